from tests.harness.outbox_fixtures import clock, folder, player

__all__ = ["clock", "folder", "player"]
