"""`python -m lienworker` is the same program as `lienworker`."""

from lienworker.cli import main

if __name__ == "__main__":
    main()
