from tests.harness.on_demand import gateway, worker

__all__ = ["gateway", "worker"]
