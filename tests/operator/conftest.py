from tests.harness.on_demand import gateway, here
from tests.harness.outbox_fixtures import clock, folder

__all__ = ["clock", "folder", "gateway", "here"]
