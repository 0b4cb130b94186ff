"""The Gateway, seen from a worker: what goes over the wire and who sends it.

    wire             the contract: tasks in, result items out, what a reply proves (pure functions)
    sanitize         makes a result fit for the Gateway before it is sent, or says why that cannot be done
    outcomes         what a call came to: accepted, refused (the row's fault), unavailable (the destination's fault)
    client           one method a route; never raises for what the network or the Gateway can do
    transport        one HTTP exchange, bounded in time and size
    bisect           a doubtful batch of results, split until the result of each item is known

Nothing here touches the database or the environment: everything comes in as arguments.
"""
