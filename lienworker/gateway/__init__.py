"""The Gateway, seen from a worker: what goes over the wire, who sends it, and a Gateway of our own to try it on.

    wire            the contract: tasks in, result items out, what a reply proves (pure functions)
    fitting         makes a result fit for the Gateway before it is sent, or says why that cannot be done
    outcomes        what a call came to: accepted, refused (the row's fault), unavailable (the destination's fault)
    client          one method a route; never raises for what the network or the Gateway can do
    taking_apart    a doubtful batch of results, taken apart until the fate of each item is known
    reference/      a Gateway with all the habits of the real one, for development, demo and tests

Nothing here touches the database or the environment: everything comes in as arguments.
"""
