from tests.harness.gateway_fixtures import call, gateway

__all__ = ["call", "gateway"]
