from tests.harness.shelf_fixtures import shelf

__all__ = ["shelf"]
