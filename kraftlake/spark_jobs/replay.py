"""The job `replay` as a program: `python -m kraftlake.spark_jobs.replay LAKE`, or spark-submit with this file."""

from __future__ import annotations

import sys

from kraftlake.spark_jobs import submit


def main(arguments: list[str] | None = None) -> int:
    """Run the job `replay`; prints one JSON object that says what it did. The exit code is kraftlake's."""
    given = sys.argv[1:] if arguments is None else arguments
    return submit.main(["replay", *given], prog="kraftlake.spark_jobs.replay")


if __name__ == "__main__":
    sys.exit(main())
