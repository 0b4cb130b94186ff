"""How a broken database reads in the log."""

from __future__ import annotations

import logging

from lienworker.db.database import is_damage


class DamageInWords(logging.Filter):
    """A broken database is one sentence in the log, not a trace for each message that met it."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and is_damage(record.exc_info[1]):
            record.msg, record.args = (
                "the database reports damage (%s); `lienworker doctor` says more",
                (record.exc_info[1],),
            )
            record.exc_info = None
        return True
