"""Copies of logs by the histories that they are of, and what a deposed leader wrote beside a second quorum."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from kraftlake.diagnosis.quorum_health import odd_histories
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.comparing.histories import History
from kraftlake.replay.comparing.log_comparison import Relation
from kraftlake.replay.comparing.voters import Role
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.queries.quorum_report import QuorumReport, describe_quorum
from tests.protocol.observer.fake_quorum import running
from tests.replay.comparing.odd_quorums import HOUR, quorum_log, split_brain, trimmed_node
from tests.replay.made_logs import TIME, data, no_op, topic
from tests.replay.queries.test_quorum_report import KAFKA_44, elected, no_ops, node_at


def nodes_of(report: QuorumReport) -> list[list[int | None]]:
    return [[copy.properties.node_id for copy in history.copies] for history in report.histories]


def other_history(report: QuorumReport) -> History:
    (other,) = report.histories[1:]
    return other


def test_two_quorums_are_two_histories_and_the_first_is_the_one_with_brokers(tmp_path: Path) -> None:
    report = describe_quorum(split_brain(tmp_path))
    assert nodes_of(report) == [[1], [2, 3]]
    first, second = report.histories
    assert (first.brokers, first.brokers_since, second.brokers) == ((4, 5, 6), (4, 5, 6), ())
    assert report.rivals == (second,)
    assert (report.has_all_committed, report.on_majority, report.electable) == (False, -1, (2, 3))
    assert [node["behind"] for node in report.to_json()["nodes"]] == [0, None, None]
    assert [node["history"] for node in report.to_json()["nodes"]] == [0, 1, 1]
    assert ((first.holding, first.lacking), (second.holding, second.lacking)) == (((1,), (2, 3)), ((2, 3), (1,)))


def test_a_dynamic_quorum_beside_the_first_has_voters_of_its_own(tmp_path: Path) -> None:
    first = node_at(tmp_path, 1, quorum_log(1, 2, 3, brokers=(4,), dynamic=True))
    alone = node_at(tmp_path, 7, quorum_log(7, dynamic=True, begins=TIME + HOUR))
    report = describe_quorum([alone, first])
    assert [[voter.id for voter in history.voters] for history in report.histories] == [[1, 2, 3], [7]]
    other = other_history(report)
    assert (other.is_on_majority, other.is_outvoted, report.histories[0].is_on_majority) == (True, False, False)
    assert report.role_of(report.copies[0]) is Role.OBSERVER


def test_three_quorums_are_three_histories(tmp_path: Path) -> None:
    logs = [quorum_log(node, 9, brokers=(4,) * (node == 2), begins=TIME + node * HOUR) for node in (1, 2, 3)]
    report = describe_quorum([node_at(tmp_path, node, log) for node, log in enumerate(logs, start=1)])
    assert nodes_of(report) == [[2], [1], [3]]
    assert len(report.rivals) == 2


def test_a_quorum_that_was_restored_from_the_middle_parts_there(tmp_path: Path) -> None:
    """Two of three controllers were put back to an earlier state, and went on: the third has what was committed."""
    start = quorum_log(1, 2, 3, brokers=(4, 5), epochs=1)
    end = start[-1].last_offset + 1
    went_on = [*start, *(data(end + i, topic(i), epoch=1, time=TIME + i * HOUR) for i in range(3))]
    put_back = [*start, elected(end, 2, 2, 3, 1, dynamic=False), no_op(end + 1, epoch=2)]
    report = describe_quorum([node_at(tmp_path, 1, went_on), *(node_at(tmp_path, n, put_back) for n in (2, 3))])
    other = other_history(report)
    assert not other.is_outvoted, "no deposed leader writes for hours"
    assert other.comparison is not None
    assert other.comparison.parts_at == end
    assert report.rivals == (other,)


DEPOSED = [elected(0, 1, 1, 2, 3), *no_ops(3, 9)]


def deposed_and_others(tail: Sequence[RecordBatch], *others: RecordBatch) -> list[list[RecordBatch]]:
    new = [elected(10, 2, 2, 1, 3, dynamic=False), *others]
    return [[*DEPOSED, *tail], [*DEPOSED, *new], [*DEPOSED, *new]]


def test_what_a_deposed_leader_wrote_is_no_second_history(tmp_path: Path) -> None:
    logs = deposed_and_others([data(10, topic(1)), no_op(11)])
    report = describe_quorum([node_at(tmp_path, node, log) for node, log in enumerate(logs, start=1)])
    other = other_history(report)
    assert (other.is_outvoted, report.rivals, nodes_of(report)) == (True, (), [[2, 3], [1]])
    assert (report.has_all_committed, report.on_majority) == (True, 10)


def test_of_two_voters_the_one_that_was_elected_since_has_the_log_of_the_quorum(tmp_path: Path) -> None:
    old, new, _ = deposed_and_others([no_op(10)])
    report = describe_quorum([node_at(tmp_path, 1, old), node_at(tmp_path, 2, new)])
    assert other_history(report).may_be_on_majority, "voter 3 may have it"
    assert other_history(report).is_outvoted, "but voter 3 elected the other one"
    by_others = [*DEPOSED, elected(10, 2, 2, 3, 4, dynamic=False)]
    report = describe_quorum([node_at(tmp_path / "o", 1, old), node_at(tmp_path / "o", 2, by_others)])
    assert other_history(report).is_outvoted, "the voters' record of the log counts, and not whom a leader names"


def test_a_leader_of_other_voters_deposes_none(tmp_path: Path) -> None:
    start = [elected(0, 1, 1, 2, 3, dynamic=False), *no_ops(1, 9)]
    old, new = [*start, no_op(10)], [*start, elected(10, 2, 2, 4, 5, dynamic=False)]
    report = describe_quorum([node_at(tmp_path, 1, old), node_at(tmp_path, 2, new)])
    assert [[voter.id for voter in one.voters] for one in report.histories] == [[2, 4, 5], [1, 2, 3]]
    assert not other_history(report).is_outvoted


def test_a_tail_that_shows_its_own_commit_is_a_second_history_even_against_a_majority(tmp_path: Path) -> None:
    logs = deposed_and_others([elected(10, 5, 1, 2, 3, dynamic=False), no_op(11, epoch=5)])
    report = describe_quorum([node_at(tmp_path, node, log) for node, log in enumerate(logs, start=1)])
    assert len(report.rivals) == 1


def test_a_log_that_was_changed_in_the_middle_is_told_apart(tmp_path: Path) -> None:
    log = quorum_log(1, 2, 3, brokers=(4,), topics=3)
    changed = list(log)
    changed[4] = attrs.evolve(log[4], timestamp=1, timestamps=(1,) * log[4].record_count)
    sources = [node_at(tmp_path, node, changed if node == 2 else log) for node in (2, 1, 3)]
    report = describe_quorum(sources)
    other = other_history(report)
    assert other.comparison is not None
    assert other.comparison.relation is Relation.CHANGED
    assert nodes_of(report) == [[1, 3], [2]], "the log of more nodes is first"
    assert (report.rivals, report.changed, report.has_all_committed) == ((), (other,), True)
    assert not describe_quorum(sources[:2]).has_all_committed, "which of the two was changed is not known"


def test_a_broker_is_shown_with_the_history_that_it_copied(tmp_path: Path) -> None:
    sources = split_brain(tmp_path)
    report = describe_quorum([*sources, node_at(tmp_path, 4, quorum_log(1, 2, 3, brokers=(4, 5, 6), topics=8)[:20])])
    assert nodes_of(report) == [[1, 4], [2, 3]]


def test_a_lake_is_a_copy_of_the_history_that_it_was_imported_from(tmp_path: Path) -> None:
    good, second, _ = split_brain(tmp_path)
    import_source(second, tmp_path / "lake")
    report = describe_quorum([good, str(tmp_path / "lake"), second])
    assert nodes_of(report) == [[1], [None, 2]]


def test_logs_that_were_trimmed_past_each_other_are_put_together_by_one_between_them(tmp_path: Path) -> None:
    log = quorum_log(1, 2, 3, brokers=(4,), no_ops=20)
    early, late = node_at(tmp_path, 1, log[:10]), trimmed_node(tmp_path, 2, log[30:])
    apart = describe_quorum([early, late])
    assert [copy.properties.node_id for copy in apart.histories[0].unplaced] == [1]
    assert [node["behind"] for node in apart.to_json()["nodes"]] == [None, 0]
    assert apart.on_majority == -1
    whole = describe_quorum([early, late, node_at(tmp_path, 3, log[:40])])
    assert nodes_of(whole) == [[2, 3, 1]]
    assert whole.histories[0].unplaced == ()


def damaged(source: str | Path, file: str, position: int) -> None:
    """Change one byte of a file of the log."""
    path = Path(source) / "__cluster_metadata-0" / file
    content = bytearray(path.read_bytes())
    content[position] ^= 0xFF
    path.write_bytes(content)


FIRST_SEGMENT = f"{0:020d}.log"


def test_a_damaged_log_is_of_its_history_as_far_as_it_can_be_read(tmp_path: Path) -> None:
    sound, broken = (shutil.copytree(KAFKA_44, tmp_path / name / "__cluster_metadata-0") for name in ("a", "b"))
    damaged(broken.parent, FIRST_SEGMENT, 542 + 70)
    report = describe_quorum([sound, broken])
    assert report.copies[1].read_to == 7, "its snapshots are of later offsets"
    assert [history.unplaced for history in report.histories] == [()]
    damaged(broken.parent, FIRST_SEGMENT, 70)
    report = describe_quorum([sound, broken])
    (first,) = report.histories
    assert first.unplaced == (report.copies[1],), "nothing can be read of it"


def test_a_log_is_read_behind_a_damaged_snapshot(tmp_path: Path) -> None:
    log = shutil.copytree(KAFKA_44, tmp_path / "__cluster_metadata-0")
    damaged(tmp_path, "00000000000000004593-0000000002.checkpoint", 70)
    (copy,) = describe_quorum(log).copies
    assert (copy.fault is None, copy.position) == (False, (2, 5737))


def test_an_empty_log_does_not_stand_for_a_damaged_one(tmp_path: Path) -> None:
    log = quorum_log(1, 2, 3, brokers=(4,))
    broken, empty = node_at(tmp_path, 1, log), node_at(tmp_path, 2, [])
    file = Path(broken) / "__cluster_metadata-0" / FIRST_SEGMENT
    damaged(broken, FIRST_SEGMENT, file.stat().st_size - 1)
    report = describe_quorum([empty, broken])
    assert nodes_of(report) == [[1, 2]]
    assert [voter.id for voter in report.voters] == [1, 2, 3]
    damaged(broken, FIRST_SEGMENT, 70)
    assert [node["behind"] for node in describe_quorum([broken, empty]).to_json()["nodes"]] == [None, 0]


def test_the_brokers_of_a_damaged_log_are_those_before_the_broken_place(tmp_path: Path) -> None:
    good, second, _ = split_brain(tmp_path)
    damaged(good, FIRST_SEGMENT, (Path(good) / "__cluster_metadata-0" / FIRST_SEGMENT).stat().st_size - 1)
    report = describe_quorum([second, good])
    assert {history.brokers for history in report.histories} == {(4, 5, 6), ()}


def test_nodes_are_named_in_the_order_of_their_ids(tmp_path: Path) -> None:
    log = quorum_log(2, 10, 11, brokers=(4,))
    nodes = [node_at(tmp_path, node, log[: len(log) - node]) for node in (10, 2)]
    rival = node_at(tmp_path, 11, quorum_log(11, begins=TIME + HOUR))
    (verdict,) = odd_histories(describe_quorum([*nodes, rival]))
    assert verdict.sentence.startswith("nodes 2 and 10 and node 11 are two histories")
    assert verdict.things == ("node 2", "node 10", "node 11")
    assert [held.nodes for held in verdict.held] == [("node 2", "node 10"), ("node 11",)]
    assert "nothing in it shows" not in verdict.held[0].words, "two of its three voters have it"


@pytest.mark.parametrize("second", [False, True])
def test_a_directory_beside_a_running_quorum_is_of_its_history_or_of_another(second: bool, tmp_path: Path) -> None:
    cluster = "kraftlakeTestClusterAA"
    with running() as quorum:
        live = describe_quorum(quorum)
        assert live.furthest.reader is not None
        log = list(live.furthest.reader.batches())
        if second:
            log = quorum_log(1, 0, 2, brokers=(4, 5), epochs=9, begins=TIME + HOUR)
        path = node_at(tmp_path, 1, log)
        file = Path(path) / "meta.properties"
        file.write_text(file.read_text().replace("cluster.id=made", f"cluster.id={cluster}"))
        report = describe_quorum([path, quorum])
    assert nodes_of(report)[0][0] == (0 if second else 1)
    assert len(report.rivals) == second
    assert report.running is not None
    assert report.histories[0].furthest.fetching is not None or not second
