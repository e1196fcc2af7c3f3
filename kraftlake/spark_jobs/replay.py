"""The job `replay` as a program: `python -m kraftlake.spark_jobs.replay LAKE`, or spark-submit with this file."""

from __future__ import annotations

import argparse
import json
import sys

from kraftlake.runtime.errors import KraftlakeError


def main(arguments: list[str] | None = None) -> int:
    """Run the job; prints one JSON object that says what it did. The exit code is kraftlake's."""
    parser = argparse.ArgumentParser(
        prog="kraftlake.spark_jobs.replay",
        description="Replay a lake's log, by a Spark stream, into the tables local_changes/ and snapshots/.",
    )
    parser.add_argument("lake", help="the lake's folder")
    parser.add_argument(
        "--trigger",
        default="available-now",
        help='available-now (the default) ends when all is replayed; an interval such as "2 seconds" goes on',
    )
    parser.add_argument("--max-files-per-trigger", type=int, metavar="N", help="files of the log in a micro-batch")
    parser.add_argument("--checkpoint", metavar="FOLDER", help="the stream's checkpoint, in the lake by default")
    options = parser.parse_args(arguments)
    try:
        from kraftlake.spark_jobs.replay_stream import run_replay

        result = run_replay(
            options.lake,
            trigger=options.trigger,
            max_files_per_trigger=options.max_files_per_trigger,
            checkpoint=options.checkpoint,
        )
    except KraftlakeError as fault:
        sys.stderr.write(f"{fault}\n")
        return fault.exit_code
    except KeyboardInterrupt:
        return 130
    summary = {
        "offset": result.offset,
        "from": result.base_offset,
        "batches": result.batches,
        "deltas": result.deltas,
        "localChangeRows": result.local_change_rows,
        "snapshots": list(result.snapshots),
        "microBatches": result.micro_batches,
    }
    sys.stdout.write(json.dumps(summary) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
