"""The program for spark-submit: `kraftlake spark` with the arguments given, whose answer is one JSON object."""

from __future__ import annotations

import sys

from kraftlake.cli import main

if __name__ == "__main__":
    sys.argv[1:] = ["spark", *sys.argv[1:], "--json"]
    main()
