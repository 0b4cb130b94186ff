from tests.harness.store_fixtures import folder

__all__ = ["folder"]
