"""The jobs as a program: `python -m kraftlake.spark_jobs.submit JOB LAKE`, or spark-submit with this file."""

from __future__ import annotations

import argparse
import json
import sys

from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.jobs import JOBS, run_job


def main(arguments: list[str] | None = None, prog: str = "kraftlake.spark_jobs.submit") -> int:
    """Run a job; prints one JSON object that says what it did. The exit code is kraftlake's."""
    parser = argparse.ArgumentParser(prog=prog, description="Keep derived tables of a lake up to date by a stream.")
    parser.add_argument("job", choices=JOBS, help="which tables: see `kraftlake spark --help`")
    parser.add_argument("lake", help="the lake's folder")
    parser.add_argument(
        "--trigger",
        default="available-now",
        help='available-now (the default) ends when all is done; an interval such as "2 seconds" goes on',
    )
    parser.add_argument("--max-files-per-trigger", type=int, metavar="N", help="files of the log in a micro-batch")
    parser.add_argument("--max-bytes-per-trigger", type=int, metavar="N", help="about so many bytes of them")
    parser.add_argument("--checkpoint", metavar="FOLDER", help="the stream's checkpoint, in the lake by default")
    given = parser.parse_args(arguments)
    try:
        from kraftlake.spark_jobs.stream_options import StreamOptions

        options = StreamOptions.of(
            trigger=given.trigger,
            max_files=given.max_files_per_trigger,
            max_bytes=given.max_bytes_per_trigger,
            checkpoint=given.checkpoint,
        )
        result = run_job(given.job, given.lake, options=options)
    except KraftlakeError as fault:
        sys.stderr.write(f"{fault}\n")
        return fault.exit_code
    except KeyboardInterrupt:
        return 130
    sys.stdout.write(json.dumps(result.to_json()) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
