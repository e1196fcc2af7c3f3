"""The log files of a node."""

from __future__ import annotations

import json
from pathlib import Path

from kraftlake.server.cluster_up.cluster_plan import ClusterPlan
from kraftlake.server.cluster_up.node_process import LONGEST_LOG, NodeProcess


def test_a_long_log_is_rotated_while_it_is_written_and_two_before_it_are_kept(tmp_path: Path) -> None:
    plan = ClusterPlan.of(str(tmp_path / "lake"), tmp_path / "data", brokers=1, controllers=1).nodes[0]
    plan.folder.mkdir(parents=True)
    node = NodeProcess(plan)
    lines = 0
    with plan.log_file.open("ab", buffering=0) as log:  # as the node has it
        for _ in range(4):
            while plan.log_file.stat().st_size < LONGEST_LOG:
                log.write(b"".join(b'{"line":%d}\n' % number for number in range(lines, lines + 10_000)))
                lines += 10_000
            node.rotate_log()
        log.write(b'{"line":%d}\n' % lines)
        node.rotate_log()
    assert sorted(path.name for path in plan.folder.iterdir()) == ["log.jsonl", "log.jsonl.1", "log.jsonl.2"]
    assert node.last_lines(5) == [json.dumps({"line": lines}, separators=(",", ":"))]
    kept = [
        json.loads(line)["line"]
        for name in ("log.jsonl.2", "log.jsonl.1", "log.jsonl")
        for line in (plan.folder / name).read_text().splitlines()
    ]
    assert kept == list(range(kept[0], lines + 1))
    assert kept[0] > 0


def test_a_log_that_can_not_be_copied_is_cut_nevertheless(tmp_path: Path) -> None:
    plan = ClusterPlan.of(str(tmp_path / "lake"), tmp_path / "data", brokers=1, controllers=1).nodes[0]
    plan.folder.mkdir(parents=True)
    plan.log_file.write_bytes(b"x" * LONGEST_LOG)
    (plan.folder / "log.jsonl.1" / "a folder").mkdir(parents=True)
    (plan.folder / "log.jsonl.2" / "a folder").mkdir(parents=True)
    NodeProcess(plan).rotate_log()
    assert plan.log_file.stat().st_size == 0
