from tests.harness.on_demand import gateway, here
from tests.harness.outbox_fixtures import folder

__all__ = ["folder", "gateway", "here"]
