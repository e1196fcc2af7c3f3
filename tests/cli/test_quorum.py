"""`kraftlake quorum`: the picture of a quorum whose nodes don't run."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cli.running import DIRECTORY, LEGACY, TORN, fault, run, run_json
from tests.replay.comparing.odd_quorums import split_brain
from tests.replay.queries.test_quorum_report import elected, no_ops, node_at


def three_nodes(folder: Path) -> list[str]:
    """The second has another directory than voter 2, the third is behind."""
    log = [elected(0, 1, 1, 2, 3), *no_ops(3, 20)]
    return [node_at(folder, 1, log), node_at(folder, 2, log, directory=9), node_at(folder, 3, log[:8])]


def test_a_quorum_is_shown_with_what_its_nodes_can_do(tmp_path: Path) -> None:
    lines = run("quorum", *three_nodes(tmp_path), width=100, code=3).stdout.splitlines()
    assert lines[0] == "cluster made  3 voters, kraft.version 1"
    rows = {tuple(line.split()[:4]): line for line in lines[4:8]}
    assert list(rows) == [
        ("1", "AQEBAQEBAQEBAQEBAQEBAQ", "voter", "0"),
        ("2", "CQkJCQkJCQkJCQkJCQkJCQ", "no", "vote"),
        ("3", "AwMDAwMDAwMDAwMDAwMDAw", "voter", "0"),
        ("2", "AgICAgICAgICAgICAgICAg", "voter", "–"),
    ]
    shown = list(rows.values())
    assert shown[1].endswith("not the directory of voter 2")
    assert shown[2].endswith("11 offsets behind")
    assert shown[3].endswith("not here")
    assert lines[-3:] == [
        "✓ 2 of 3 voters are here, 2 are needed: they can elect 1",
        "✓ all that was ever committed is in the furthest of these logs",
        "✓ a majority of the voters has the offsets up to 9",
    ]


def test_directory_ids_can_be_copied_from_80_columns(tmp_path: Path) -> None:
    lines = run("quorum", *three_nodes(tmp_path), width=80, code=3).stdout.splitlines()
    assert sum("AQEBAQEBAQEBAQEBAQEBAQ" in line for line in lines) == 1
    assert max(map(len, lines)) <= 80


def test_a_minority_learns_what_it_may_lack(tmp_path: Path) -> None:
    shown = run("quorum", three_nodes(tmp_path)[2], code=3).stdout
    assert "✗ 1 of 3 voters is here, 2 are needed: no leader can be elected of these alone" in shown
    assert "✗ what the other voters committed without these may be missing in all of these logs" in shown


def test_what_nodes_noted_of_elections_is_shown(tmp_path: Path) -> None:
    sources = three_nodes(tmp_path)
    noted = [(2, 7, -1), (-1, 8, 3), (-1, 9, -1)]
    for source, (leader, epoch, voted) in zip(sources, noted, strict=True):
        state = Path(source) / "__cluster_metadata-0" / "quorum-state"
        state.write_text(f'{{"leaderId":{leader},"leaderEpoch":{epoch},"votedId":{voted},"data_version":1}}')
    shown = run("quorum", *sources, code=3).stdout
    assert "follows 2 in epoch 7" in shown
    assert "voted for 3 in epoch 8" in shown
    assert "no leader in epoch 9" in shown
    assert "leads in epoch 2" in run("quorum", DIRECTORY).stdout


def test_a_node_that_would_not_start_does_not_count(tmp_path: Path) -> None:
    sources = three_nodes(tmp_path)
    (Path(sources[0]) / "__cluster_metadata-0" / "quorum-state").touch()
    shown = run("quorum", *sources, code=3).stdout
    assert "quorum-state is empty" in shown
    assert "✗ 1 of 3 voters is here and sound, 2 are needed: no leader can be elected of these alone" in shown


def test_an_observer_whose_log_goes_further_than_the_voters_is_named(tmp_path: Path) -> None:
    log = [elected(0, 1, 1, 2, 3), *no_ops(3, 20)]
    shown = run("quorum", node_at(tmp_path, 1, log[:5]), node_at(tmp_path, 101, log), code=3).stdout
    assert "✗ the log of node 101, which has no vote, goes further than those of all voters here" in shown


def test_what_a_deposed_leader_will_drop_is_shown(tmp_path: Path) -> None:
    start = [elected(0, 1, 1, 2), *no_ops(3, 9)]
    deposed = node_at(tmp_path, 1, start + no_ops(10, 12))
    other = node_at(tmp_path, 2, [*start, elected(10, 2, 1, 2)])
    shown = run("quorum", deposed, other, code=3).stdout
    assert "another log from 10 on" in shown
    assert "will be cut off" not in shown


def test_two_histories_are_shown_with_what_each_has_alone(tmp_path: Path) -> None:
    lines = run("quorum", *split_brain(tmp_path), code=3).stdout.splitlines()
    at = lines.index(
        "✗ node 1 and nodes 2 and 3 are two histories: they differ from offset 0 on, the first that both have (other "
        "bytes)"
    )
    assert lines[at + 1].startswith("  · node 1: alone offsets 0 to 37 in epochs 1 to 3, 20 records besides no-ops")
    assert lines[at + 2].startswith(
        "  · node 2 and node 3: alone offsets 0 to 45 in epochs 1 to 5, 1 record besides no"
    )
    assert lines[at + 3].endswith("elect 2 or 3, and the others drop what is not in its log, whichever history that is")
    assert lines[at + 4] == "✗ which of these 2 logs brokers follow is not known by the logs alone"
    assert "all that was ever committed" not in "\n".join(lines)


def test_a_snapshot_without_a_node_is_named_by_its_file(tmp_path: Path) -> None:
    name = "00000000000000004593-0000000002.checkpoint"
    shutil.copy(DIRECTORY / name, tmp_path)
    shown = run("quorum", tmp_path / name, code=3).stdout
    assert f"up to 4592      2  –      {name}" in shown
    assert "0 of 1 voter is here" in shown


def test_the_json_form_has_nodes_in_the_order_given() -> None:
    report = run_json("quorum", DIRECTORY)
    (history,) = report.pop("histories")
    assert history == {
        "nodeIds": [3000],
        "startOffset": 0,
        "endOffset": 5737,
        "lastEpoch": 2,
        "voters": [3000],
        "brokers": None,
        "brokersSinceParting": [],
        "alone": None,
        "onMajority": True,
        "outvoted": False,
        "comparison": None,
    }
    assert report == {
        "clusterId": "VXUoBgBGTaWWfCM4Toybuw",
        "kraftVersion": 1,
        "voters": [
            {
                "id": 3000,
                "directoryId": "ClQ37eiQv2tWavOtD_g41g",
                "endpoints": ["CONTROLLER://127.0.0.1:19180"],
                "here": True,
            }
        ],
        "needed": 1,
        "electable": [3000],
        "hasAllCommitted": True,
        "onMajority": 5736,
        "nodes": [
            {
                "source": str(DIRECTORY),
                "nodeId": 3000,
                "directoryId": "ClQ37eiQv2tWavOtD_g41g",
                "role": "voter",
                "startOffset": 0,
                "endOffset": 5737,
                "lastEpoch": 2,
                "behind": 0,
                "otherFrom": None,
                "leaderEpoch": 2,
                "leaderId": 3000,
                "votedId": None,
                "fault": None,
                "history": 0,
            }
        ],
    }


def test_a_static_quorum_and_a_torn_log_are_shown() -> None:
    assert run("quorum", LEGACY).stdout.splitlines()[0].endswith("1 voter, kraft.version 0")
    assert "0 to 3466" in run("quorum", TORN).stdout


def test_the_exit_code_says_whether_the_quorum_is_well(tmp_path: Path) -> None:
    nodes = three_nodes(tmp_path)
    for json in ([], ["--json"]):
        run("quorum", DIRECTORY, *json)
        run("quorum", nodes[0], nodes[2], *json)  # 2 of 3 can elect
        run("quorum", nodes[0], *json, code=3)
        run("quorum", *nodes, *json, code=3)  # one has no vote


def test_faults_are_one_sentence(tmp_path: Path) -> None:
    assert "of different clusters" in fault("quorum", DIRECTORY, TORN, code=2)
    assert "does not exist" in fault("quorum", DIRECTORY, tmp_path / "gone")
    run("quorum", code=2)
