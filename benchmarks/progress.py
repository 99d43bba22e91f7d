"""Progress lines: stderr, so that stdout holds the tables alone."""

import sys


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
