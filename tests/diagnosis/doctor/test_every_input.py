"""Whatever the doctor looks at: it ends, its exit code says what it found, its help harms nobody, its commands run."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings

from kraftlake.cli.application import application
from kraftlake.diagnosis.doctor.help import HelpRisk, risks_named
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import ApiMessageAndVersion
from tests.cli.made_logs import TIME, directory_of
from tests.diagnosis.doctor.inputs import FULL, QUICK, Input
from tests.histories import histories
from tests.replay.queries.test_quorum_report import elected

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
INPUTS = FULL if LONG else QUICK
CODES = {"verify": (0, 1), "quorum": (0, 3)}
"""The exit codes with which a command answers that shows more, 0 for all others."""
SECONDS = 120
"""The CPU time after which a command is taken to go on for ever."""


@contextmanager
def _ended() -> Iterator[None]:
    """Fail what goes on for ever."""

    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"it has not ended after {SECONDS} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def answer(words: Sequence[str]) -> Result:
    """What a command line answers; a fault in it is raised."""
    environment = {"KRAFTLAKE_TRACEBACK": "1", "COLUMNS": "100"}
    with _ended():
        result = CliRunner().invoke(application, [*words], env=environment, prog_name="kraftlake")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def check(words: Sequence[str]) -> dict[str, Any]:
    """Run the doctor on an input and hold all that it says against the promises; gives what it has found."""
    result = answer(["doctor", *words, "--json"])
    if not result.stdout:
        assert result.exit_code in (1, 2), "it has not answered"
        assert result.stderr.startswith("error: ")
        return {}
    diagnosis: dict[str, Any] = json.loads(result.stdout)
    wrong = [one for one in diagnosis["findings"] if one["severity"] != "info"]
    assert result.exit_code == (1 if diagnosis["offset"] is None else 3 if wrong else 0)
    assert wrong or diagnosis["offset"] is not None, "that nothing is known is a finding"
    for finding in diagnosis["findings"]:
        assert finding["helps"]
        for one in finding["helps"]:
            check_help(finding, one)
            if one["risk"] in HOLDS:
                check_evidence(words[0], diagnosis["offset"], one)
    if any(finding["check"] == "two_histories" for finding in diagnosis["findings"]):
        helps = [one for finding in diagnosis["findings"] for one in finding["helps"]]
        assert [one["action"] for one in helps if HelpRisk(one["risk"]).is_destructive] == [], "either log may be right"
    for command in {finding["command"] for finding in diagnosis["findings"]}:
        check_command(command)
    return diagnosis


def check_help(finding: dict[str, Any], one: dict[str, Any]) -> None:
    """What destroys data says so, why for each thing, and what it costs."""
    risk = HelpRisk(one["risk"])
    assert risks_named(one["action"]) == ({risk} if risk.is_destructive else set())
    if not risk.is_destructive:
        return
    assert one["cost"]
    assert one["evidence"]
    for group in one["evidence"]:
        assert group["reason"]
        assert group["things"]
        if finding["check"] in OF_THE_SAME_THINGS:
            assert set(group["things"]) <= set(finding["things"])


OF_THE_SAME_THINGS = ("offline_partitions", "reassignments", "stray_folders", "quorum_election", "voter_directory")
"""The checks whose things are what the evidence of a help names; of others it names partitions, or other logs."""


def check_evidence(source: str, offset: int, one: dict[str, Any]) -> None:
    """By the JSON form of the image: what an unclean election or a cancellation is proposed for is so."""
    image = json.loads(answer(["image", source, "--json", "--lenient", "--at-offset", str(offset)]).stdout)
    for group in one["evidence"]:
        for thing in group["things"]:
            topic, _, number = thing.rpartition("-")
            partition = image["topics"][topic]["partitions"][number]
            usable = {
                id_ for id_ in map(int, image["brokers"]) if is_usable(image["brokers"][str(id_)], id_, partition)
            }
            assert HOLDS[one["risk"]](partition, usable, image["brokers"]), f"{thing}: {group['reason']}"


def is_usable(broker: dict[str, Any], id_: int, partition: dict[str, Any]) -> bool:
    """Whether the directory of a replica on a broker is there, whether or not the broker runs."""
    directory = dict(zip(partition["replicas"], partition["directories"], strict=True)).get(id_)
    if directory in (None, "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ"):
        return True
    return directory != "AAAAAAAAAAAAAAAAAAAAAg" and (not broker["directories"] or directory in broker["directories"])


def nobody_may_lead(partition: dict[str, Any], usable: set[int], _: Any) -> bool:
    """Starting a broker, whichever it is, gives no leader that has all records."""
    return partition["leader"] == -1 and not usable & set(
        partition["isr"] + partition["elr"] or partition["lastKnownElr"]
    )


def has_a_way_back(partition: dict[str, Any], usable: set[int], brokers: dict[str, Any]) -> bool:
    """A replica that was there before is in sync, on a broker that runs."""
    running = {id_ for id_ in usable if not brokers[str(id_)]["fenced"]}
    return bool(running & set(partition["isr"]) - set(partition["addingReplicas"]))


HOLDS: dict[str, Callable[[dict[str, Any], set[int], dict[str, Any]], bool]] = {
    HelpRisk.UNCLEAN_ELECTION.value: nobody_may_lead,
    HelpRisk.CANCEL.value: has_a_way_back,
}
"""What has to be so of each thing of the evidence, by risk."""


def check_command(command: str) -> None:
    """The command that shows more runs as it is printed, and prints something."""
    name, *words = shlex.split(command)
    assert name == "kraftlake"
    result = answer(words)
    assert result.exit_code in CODES.get(words[0], (0,)), f"{command}\n{result.stderr}"
    assert result.stdout.strip(), f"{command} prints nothing"


@pytest.mark.parametrize("make", INPUTS.values(), ids=INPUTS)
def test_the_doctor_keeps_its_promises(make: Input, tmp_path: Path) -> None:
    check(make(tmp_path))


@settings(max_examples=60 if LONG else 4)
@given(records=histories())
def test_the_doctor_keeps_its_promises_on_any_history(
    records: list[ApiMessageAndVersion], tmp_path_factory: pytest.TempPathFactory
) -> None:
    batches = [elected(0, 1, 1, dynamic=False)]
    for offset, record in enumerate(records, start=1):
        batches.append(RecordBatch.of(offset, 1, TIME + offset * 60_000, [record]))
    check([str(directory_of(tmp_path_factory.mktemp("history"), batches))])
