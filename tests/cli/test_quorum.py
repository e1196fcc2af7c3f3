"""`kraftlake quorum`: the picture of a quorum whose nodes don't run."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cli.running import DIRECTORY, LEGACY, TORN, fault, run, run_json
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


def test_a_minority_is_told_what_it_may_lack(tmp_path: Path) -> None:
    shown = run("quorum", three_nodes(tmp_path)[2], code=3).stdout
    assert "✗ 1 of 3 voters is here, 2 are needed: no leader can be elected of these alone" in shown
    assert "✗ what the other voters committed without these may be missing in all of these logs" in shown


def test_what_nodes_noted_of_elections_is_told(tmp_path: Path) -> None:
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


def test_what_will_be_cut_off_is_told(tmp_path: Path) -> None:
    start = [elected(0, 1, 1, 2), *no_ops(3, 9)]
    deposed = node_at(tmp_path, 1, start + no_ops(10, 12))
    other = node_at(tmp_path, 2, [*start, elected(10, 2, 1, 2)])
    assert (
        "from 10 on not what the furthest log has: it will be cut off" in run("quorum", deposed, other, code=3).stdout
    )


def test_a_snapshot_without_a_node_is_named_by_its_file(tmp_path: Path) -> None:
    name = "00000000000000004593-0000000002.checkpoint"
    shutil.copy(DIRECTORY / name, tmp_path)
    shown = run("quorum", tmp_path / name, code=3).stdout
    assert f"up to 4592      2  –      {name}" in shown
    assert "0 of 1 voter is here" in shown


def test_the_json_form_has_nodes_in_the_order_given() -> None:
    told = run_json("quorum", DIRECTORY)
    assert told == {
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
