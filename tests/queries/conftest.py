from tests.harness.outbox_fixtures import clock, folder
from tests.harness.shelf_fixtures import shelf

__all__ = ["clock", "folder", "shelf"]
