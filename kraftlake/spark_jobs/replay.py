"""The job `replay` as a program: `python -m kraftlake.spark_jobs.replay LAKE`, or spark-submit with this file."""

from __future__ import annotations

import sys

from kraftlake.spark_jobs.submit import main

if __name__ == "__main__":
    sys.exit(main(["replay", *sys.argv[1:]], prog="kraftlake.spark_jobs.replay"))
