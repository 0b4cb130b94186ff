"""`periodiq lienworker.actors`, with our way of logging."""

from __future__ import annotations

import sys

from periodiq import main, make_argument_parser

from lienworker.logs import setup_logging
from lienworker.settings import Settings

if __name__ == "__main__":
    setup_logging(Settings.from_environment().log_level)
    sys.exit(main(make_argument_parser().parse_args(["lienworker.actors"])))
