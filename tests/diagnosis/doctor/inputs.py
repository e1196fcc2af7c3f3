"""Inputs for the doctor: samples and cuts of them, generated quorums, and copies with damage that a seed chooses."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from kraftlake.kafka_files.writer import write_segment
from kraftlake.replay.queries.source import LogSource
from tests.cli.running import DIRECTORY, LEGACY, ROOT, TORN
from tests.docs.broken_logs import BROKEN
from tests.replay.comparing.odd_quorums import HOUR, quorum_log, split_brain
from tests.replay.made_logs import TIME
from tests.replay.queries.test_quorum_report import elected, no_ops, node_at

Words = list[str]
"""The words of a command line after `doctor`."""
Input = Callable[[Path], Words]
"""Makes an input in a folder."""


def sample(directory: Path) -> Input:
    return lambda _: [str(directory)]


def broken(kind: str, argument: str) -> Input:
    """One of the broken logs of docs/incidents.md."""

    def make(folder: Path) -> Words:
        BROKEN[kind](folder, argument)
        return [str(folder / "md"), *(["--log-dirs", str(folder / "d1")] if (folder / "d1").is_dir() else [])]

    return make


def damaged(seed: int) -> Input:
    """A copy of a sample that ends somewhere, or whose files are torn, flipped, exchanged or missing."""
    chance = random.Random(seed)

    def make(folder: Path) -> Words:
        copy = folder / "md"
        if chance.random() < 0.5:
            _cut(chance, copy)
        else:
            shutil.copytree(chance.choice((TORN, LEGACY)), copy)
        for _ in range(chance.choice((0, 1, 1, 1, 2, 4))):
            chance.choice((_flip, _flip, _truncate, _remove, _zero, _exchange))(chance, copy)
        if chance.random() < 0.2:
            return [str(copy), "--at-offset", str(chance.randrange(600))]
        return [str(copy)]

    return make


def quorum(seed: int) -> Input:
    """Some of the nodes of a quorum, each with another end, perhaps in other epochs, directories or with damage."""
    chance = random.Random(seed)

    def make(folder: Path) -> Words:
        voters = range(1, chance.choice((1, 3, 3, 5)) + 1)
        dynamic = chance.random() < 0.7
        log = [elected(0, 1, *voters, dynamic=dynamic), *no_ops(3 if dynamic else 1, 20)]
        sources = []
        for node in chance.sample([*voters, 101], chance.randrange(1, len(voters) + 2)):
            end = chance.randrange(1, len(log) + 1)
            batches = log[:end]
            if chance.random() < 0.3:
                last = batches[-1].last_offset + 1
                batches = [*batches, elected(last, chance.choice((2, 3)), *voters, dynamic=False)]
            other = chance.choice((None, None, None, 9))
            sources.append(node_at(folder, node, batches, directory=other))
            if chance.random() < 0.2:
                _flip(chance, Path(sources[-1]) / "__cluster_metadata-0")
        return sources

    return make


def rivals(seed: int) -> Input:
    """Nodes of two quorums of one cluster id: which of them is right is not known, and some may be damaged."""
    chance = random.Random(seed)

    def make(folder: Path) -> Words:
        voters = (1, 2, 3)[: chance.choice((1, 3, 3))]
        logs = [
            quorum_log(
                *voters, brokers=range(4, chance.randrange(5, 8)), topics=chance.randrange(4),
                epochs=chance.randrange(1, 6), no_ops=chance.randrange(1, 9), begins=TIME + begins,
            )
            for begins in (0, chance.choice((1, HOUR)))
        ]  # fmt: skip
        sources = []
        for node in (*voters, 4):
            log = logs[node % 2]
            sources.append(node_at(folder, node, log[: chance.randrange(2, len(log) + 1)]))
            if chance.random() < 0.15:
                _flip(chance, Path(sources[-1]) / "__cluster_metadata-0")
        return sources

    return make


def _cut(chance: random.Random, copy: Path) -> None:
    """A copy of the large sample up to an offset, without snapshots."""
    copy.mkdir()
    last = chance.randrange(20, 3_000)
    batches = [batch for batch in LogSource.open(DIRECTORY).batches() if batch.last_offset <= last]
    write_segment(copy / "00000000000000000000.log", batches)
    shutil.copy(DIRECTORY.parent / "meta.properties", copy)


def _file(chance: random.Random, copy: Path) -> Path | None:
    files = sorted(one for one in copy.iterdir() if one.suffix in (".log", ".checkpoint") and one.stat().st_size)
    return chance.choice(files) if files else None


def _flip(chance: random.Random, copy: Path) -> None:
    if file := _file(chance, copy):
        content = bytearray(file.read_bytes())
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        file.write_bytes(content)


def _truncate(chance: random.Random, copy: Path) -> None:
    if file := _file(chance, copy):
        file.write_bytes(file.read_bytes()[: chance.randrange(file.stat().st_size)])


def _zero(chance: random.Random, copy: Path) -> None:
    if file := _file(chance, copy):
        content = bytearray(file.read_bytes())
        at = chance.randrange(len(content))
        content[at : at + 600] = bytes(len(content[at : at + 600]))
        file.write_bytes(content)


def _remove(chance: random.Random, copy: Path) -> None:
    if file := _file(chance, copy):
        file.unlink()


def _exchange(chance: random.Random, copy: Path) -> None:
    """The bytes of one file under the name of another."""
    one, other = _file(chance, copy), _file(chance, copy)
    if one and other:
        other.write_bytes(one.read_bytes())


PAGE = (ROOT / "docs" / "incidents.md").read_text("utf-8")
SHOWN = sorted({*re.findall(r"`md` is `(\w+) ?(\d*)`:", PAGE)})
"""The broken logs that docs/incidents.md shows, with their arguments."""

QUICK: dict[str, Input] = {
    "a sample of Kafka 3.3": sample(LEGACY),
    "a torn sample": sample(TORN),
    "a snapshot alone": sample(DIRECTORY / "00000000000000003038-0000000002.checkpoint"),
    "a broker that was just lost": broken("cut", "465"),
    "folders of a broker": broken("folders", "402"),
    "a disk that failed": broken("disk", "1000"),
    "one wrong bit": broken("flipped", "300"),
    "another directory than the voter's": broken("restored", ""),
    **{f"damage {seed}": damaged(seed) for seed in range(3)},
    **{f"quorum {seed}": quorum(seed) for seed in range(3)},
    "a second quorum": split_brain,
    "rivals 0": rivals(0),
}
"""A handful of each kind."""

FULL: dict[str, Input] = {
    **QUICK,
    "a sample of Kafka 4.4": sample(DIRECTORY),
    **{f"{kind} {argument}": broken(kind, argument) for kind, argument in SHOWN},
    **{f"cut {offset}": broken("cut", str(offset)) for offset in range(100, 2_900, 200)},
    **{f"damage {seed}": damaged(seed) for seed in range(100)},
    **{f"quorum {seed}": quorum(seed) for seed in range(60)},
    **{f"rivals {seed}": rivals(seed) for seed in range(30)},
}
"""All of them."""
