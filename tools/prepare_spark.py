"""Resolves Delta Lake's jars for Spark into the user's cache, once: `make` runs this so that later runs start quietly.

Says one line when it has to download; exit 1 with one sentence when it can't.
"""

from __future__ import annotations

import sys

from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.jars import jars_are_cached, spark_jars


def main() -> int:
    """0 when the jars are there in the end, else 1."""
    try:
        if not jars_are_cached():
            print("fetching Delta Lake's jars for Spark (about 15 MB, once)", file=sys.stderr, flush=True)
        spark_jars()
    except KraftlakeError as fault:
        print(fault, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
