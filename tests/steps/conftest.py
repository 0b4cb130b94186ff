from tests.harness.on_demand import gateway, here, worker
from tests.harness.shelf_fixtures import ondemand_shelf, shelf

__all__ = ["gateway", "here", "ondemand_shelf", "shelf", "worker"]
