"""Applies a plan to the cluster at some addresses: its brokers, or its controllers."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from kraftlake.diagnosis.drift.description import describe
from kraftlake.diagnosis.undo.applying import Application, Applied, Pace, Taken
from kraftlake.diagnosis.undo.asked_cluster import AskedCluster
from kraftlake.diagnosis.undo.journal import Journal
from kraftlake.diagnosis.undo.observed_cluster import ObservedCluster
from kraftlake.diagnosis.undo.plan import Plan
from kraftlake.diagnosis.undo.step import StepClass
from kraftlake.protocol.address import parse_addresses
from kraftlake.protocol.admin_client import AdminClient
from kraftlake.protocol.node_connector import connector_of
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.log import get_logger

ALWAYS: Final = (StepClass.SAFE, StepClass.PARTIAL)
"""The classes whose steps are taken without being asked for."""


def apply_plan(
    plan: Plan,
    source: LogSource,
    on: str,
    *,
    journal: Path,
    classes: Collection[StepClass] = ALWAYS,
    command_config: str | os.PathLike[str] | None = None,
    pace: Pace | None = None,
    on_step: Callable[[Taken], object] = lambda _: None,
    warn: Callable[[str], None] | None = None,
) -> Applied:
    """Take the steps of a plan whose class is one of `classes`, at the cluster whose nodes are at `on`.

    `on` is `HOST:PORT[,…]` of brokers or controllers; `source` is the log that the plan was made of. Each request is a
    line in the file `journal`, and a row in the table `undo/` of a lake. A second application of a plan takes what the
    first one has left. Raises ApplyError at the first step that can't be taken, NodeError where the cluster does not
    answer, OtherClusterError where it is another one, UsageError for a journal that another process has, LakeError for
    such a table.
    """
    past = source.replay(plan.then.offset).image
    then = describe(past, also=("placement",) if plan.assignments else ())
    connect = connector_of(
        None if command_config is None else Path(command_config), warn=warn or get_logger(__name__).warning
    )
    with ExitStack() as opened:
        client = opened.enter_context(AdminClient(parse_addresses(on), connect=connect, cluster_id=plan.cluster_id))
        client.prepare()
        # Where no node answers, no file is made.
        lines = opened.enter_context(Journal(journal, opened.enter_context(_table_of(source, plan))))
        cluster: ObservedCluster | AskedCluster = AskedCluster(client)
        if client.over_controllers:
            cluster = ObservedCluster(
                LogSource.open(on, cluster_id=client.cluster_id, command_config=command_config, warn=warn)
            )
        opened.callback(cluster.close)
        application = Application(plan, client, cluster, lines, classes=classes, pace=pace, on_step=on_step)
        application.validate()
        steps = application.run()
        return Applied(steps=steps, left=application.left(then, topics=plan.topics, kinds=plan.kinds))


@contextmanager
def _table_of(source: LogSource, plan: Plan) -> Iterator[Callable[[Mapping[str, Any]], object]]:
    """What adds the lines of a journal to the table of a lake; for other sources, it does nothing."""
    if not isinstance(source.reader, LakeReader):
        yield lambda _: None
        return
    from kraftlake.tables.table_locks import hold_tables
    from kraftlake.tables.undo_table import UNDO, UndoTable

    lake = source.reader.log.path
    with hold_tables(lake, [UNDO.name]):
        table = UndoTable(lake, plan.then.offset)
        yield table.add
        table.finish()
