"""The jobs as a program: `python -m kraftlake.spark_jobs.submit JOB LAKE...`, or spark-submit with this file."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Final

from kraftlake.runtime.errors import KraftlakeError
from kraftlake.runtime.process_setup import configure_process
from kraftlake.spark_jobs.run_named_job import run_job
from kraftlake.tables.jobs import JOBS

SNAPSHOT: Final = "snapshot"
"""The job without a stream: see `build_snapshot`."""

_OF_STREAMS: Final = ("trigger", "max_records_per_trigger")


def main(arguments: list[str] | None = None, prog: str = "kraftlake.spark_jobs.submit") -> int:
    """Run a job and print its result as one JSON object. The exit code is kraftlake's."""
    parser = _parser(prog)
    given = parser.parse_args(arguments)
    try:  # also of imports: an installation may lack its compiled code
        from kraftlake.metadata_log.lakes import names_many
        from kraftlake.spark_jobs.many_lakes import run_lakes

        many = len(given.lakes) > 1 or names_many(given.lakes[0])
        _check(parser, given, many=many)
        result = run_lakes(given.job, given.lakes).to_json() if many else _run(given)
    except KraftlakeError as fault:
        sys.stderr.write(f"{fault}\n")
        return fault.exit_code
    except KeyboardInterrupt:
        return 130
    sys.stdout.write(json.dumps(result) + "\n")
    return 1 if result.get("failed") else 0


def _check(parser: argparse.ArgumentParser, given: argparse.Namespace, *, many: bool) -> None:
    """Refuse options that the job does not have."""
    if given.job == SNAPSHOT and many:
        parser.error(f"{SNAPSHOT} is for one lake")
    if given.job == SNAPSHOT or many:
        why = "many lakes are brought up to date without one" if many else f"{SNAPSHOT} is none"
        for name in _OF_STREAMS:
            if getattr(given, name) is not None:
                parser.error(f"--{name.replace('_', '-')} is for streams, and {why}")
    if given.job != SNAPSHOT and given.at_offset is not None:
        parser.error(f"--at-offset is for {SNAPSHOT}: what a stream writes reaches to the end of the log")


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog, description="Keep derived tables of a lake up to date by a stream, or fold its log into a snapshot."
    )
    parser.add_argument("job", choices=[*JOBS, SNAPSHOT], help="which tables: see `kraftlake spark --help`")
    parser.add_argument(
        "lakes",
        nargs="+",
        metavar="LAKE",
        help="the lake's folder or URI; of many, also of a folder of lakes and a pattern, each is a task",
    )
    parser.add_argument(
        "--trigger", help='available-now (the default) ends when all is done; an interval such as "2 seconds" goes on'
    )
    parser.add_argument("--max-records-per-trigger", type=int, metavar="N", help="records of the log in a micro-batch")
    parser.add_argument(
        "--at-offset", type=int, metavar="N", help=f"of {SNAPSHOT}: its last offset, the end of the log by default"
    )
    return parser


def _run(given: argparse.Namespace) -> dict[str, Any]:
    if given.job == SNAPSHOT:
        from kraftlake.spark_jobs.fold.build_snapshot import run_snapshot

        return run_snapshot(given.lakes[0], given.at_offset).to_json()
    from kraftlake.spark_jobs.stream_options import AVAILABLE_NOW, StreamOptions

    options = StreamOptions(
        trigger=given.trigger or AVAILABLE_NOW,
        max_records=given.max_records_per_trigger,
    )
    configure_process()
    return run_job(given.job, given.lakes[0], options=options).to_json()


if __name__ == "__main__":
    sys.exit(main())
