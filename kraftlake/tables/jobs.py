"""The jobs that keep a lake's derived tables up to date, by name.

Imports no large module, since the command line imports this one at each start: a job imports what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from kraftlake.runtime.arguments import text
from kraftlake.runtime.errors import UsageError

if TYPE_CHECKING:
    from kraftlake.tables.table_writer import TableWriter


class Job(NamedTuple):
    """Tables that one pass over a lake's log keeps up to date.

    `question` is one line on the job's purpose, `help` the rest. `writers` names the classes of its TableWriters, each
    as `module:class` in this room, or a function that makes a list of them. `snapshots`: whether the job writes the
    lake's snapshots too.
    """

    name: str
    question: str
    help: str
    tables: tuple[str, ...]
    writers: tuple[str, ...]
    snapshots: bool = False

    def new_writers(self) -> list[TableWriter]:
        """Writers for one run."""
        made: list[TableWriter] = []
        for name in self.writers:
            module, _, writer = name.partition(":")
            new = getattr(import_module(f"kraftlake.tables.{module}"), writer)()
            made += new if isinstance(new, list) else [new]
        return made


REPLAY: Final = Job(
    name="replay",
    question="Replay a lake's log by a structured stream into images and tables.",
    help=(
        "Replay what the log of LAKE holds beyond the last run, and show the cluster at its end.\n\n"
        "A Spark structured stream makes one metadata delta of each log batch; the local changes of each broker go "
        "into the table local_changes/, images into snapshots/. The result depends on the log alone: a run that was "
        "killed is simply run again."
    ),
    tables=("local_changes",),
    writers=("local_changes.local_changes_writer:LocalChangesWriter",),
    snapshots=True,
)

HISTORY: Final = Job(
    name="history",
    question="Write what everything was, from when to when.",
    help=(
        "Write the history tables of LAKE: one row for each state of a partition (partition_history/) with the offsets "
        "and times from which and to which it was so, and likewise for topics, brokers, configs, ACLs, client quotas, "
        "features, SCRAM users, controllers, delegation tokens, log directories, and the leaders and voters of the "
        "quorum. A row that is still so has no end. Secrets are redacted."
    ),
    tables=(
        "partition_history",
        "topic_history",
        "broker_history",
        "config_history",
        "acl_history",
        "quota_history",
        "feature_history",
        "scram_history",
        "controller_history",
        "token_history",
        "quorum_history",
        "voter_history",
        "directory_history",
    ),
    writers=("history.writers:history_writers",),
)

EVENTS: Final = Job(
    name="events",
    question="Write what happened in the cluster as readable rows.",
    help=(
        "Write what happened in the cluster, with offset and time, into the table events/ of LAKE: leaders that moved, "
        "ISRs that shrank, brokers that were fenced, topics, reassignments, configs before and after, quotas, ACLs, "
        "features. Secrets are redacted."
    ),
    tables=("events",),
    writers=("events.events_writer:EventsWriter",),
)

METRICS: Final = Job(
    name="metrics",
    question="Write Kafka's controller counts over time, and those of partitions in trouble.",
    help=(
        "Write Kafka's controller counts (brokers active and fenced, topics, partitions, offline and imbalanced ones, "
        "unclean elections) and those of partitions under min ISR, under-replicated, led by a fenced broker, "
        "reassigning and recovering, and of offline directories, into the table cluster_metrics/ of LAKE: a row for "
        "each offset from which on they differ."
    ),
    tables=("cluster_metrics",),
    writers=("metrics.cluster_metrics:ClusterMetricsWriter",),
)

RECORDS: Final = Job(
    name="records",
    question="Write every record in typed columns, for SQL.",
    help=(
        "Write every record of LAKE's log into the table records/: a struct column for each record type, without "
        "secrets. No image is made, so that it starts at once; executors decode and write the records."
    ),
    tables=("records",),
    writers=("records_table:RecordsWriter",),
)

_SINGLE: Final = (REPLAY, HISTORY, EVENTS, METRICS)

ALL: Final = Job(
    name="all",
    question="Keep all tables that are made of images, and the snapshots, by one stream.",
    help=(
        "Bring every derived table of LAKE but records/, and its snapshots, up to the end of the log: what the other "
        "jobs do, by one stream that folds the log once. Tables that are at different offsets each go on where they "
        "are."
    ),
    tables=tuple(table for job in _SINGLE for table in job.tables),
    writers=tuple(writer for job in _SINGLE for writer in job.writers),
    snapshots=True,
)

JOBS: Final = {job.name: job for job in (*_SINGLE, RECORDS, ALL)}
"""The jobs by name."""

TABLES: Final = (*ALL.tables, *RECORDS.tables)
"""The names of all derived tables."""


def job_named(name: str) -> Job:
    """One of JOBS; raises UsageError for another name."""
    job = JOBS.get(text(name, "the name of a job"))
    if job is None:
        raise UsageError(f"there is no job {name!r}: it is one of {', '.join(JOBS)}")
    return job
