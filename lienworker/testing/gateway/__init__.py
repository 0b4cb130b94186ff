"""A Gateway of our own that behaves as the real one does, its odd habits included.

For tests:        with reference_gateway() as gateway: gateway.enqueue(...); gateway.fault("503", count=3)
For a demo:       serve(host, port, token, data_folder, tasks), which `lienworker gateway serve` calls
From outside:     the routes under /_control/ (see `control`)

    running       in a thread, or in the foreground
    server        the order in which a request is looked at
    endpoints     the routes          decoding   strictly typed bodies      replies   how things are worded
    state         all it knows        queue      tasks, handed out once     storage   results and raw files
    faults        what can be made to go wrong
"""

from lienworker.testing.gateway.running import ReferenceGateway, read_tasks, reference_gateway, serve
from lienworker.testing.gateway.state import GatewayState, Settings

__all__ = ["GatewayState", "ReferenceGateway", "Settings", "read_tasks", "reference_gateway", "serve"]
