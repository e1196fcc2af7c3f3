"""The way of a record through the code, traced: which files run, and how many moves between rooms there are.

    python -m benchmarks.record_path [--tree OTHER] [--only WAY …] [--files] [--json] [--page FILE]

Each way is run once, in a process of its own, by the code of this checkout or of another one. A file is on the way if a
function of it runs, after it was imported; a move is a function of one room that calls a function of another room,
counted once however often it does. Compiled functions count as one file of `kernels`. Ten topics are created, and what
runs for each of them counts, as the nodes send heartbeats and the like meanwhile. `--page FILE` puts the pictures into
the last block of a page.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import runpy
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = "samples/kafka-4.4/log/__cluster_metadata-0"
COMPILED = "kernels/compiled"
MAIN = "__main__.py"
TOPICS = 10


Move = tuple[str, str, str, str]
"""The file and the function that call, and those that are called."""


class Trace:
    """The files of a package that run in each of some turns, and the calls from one room of it to another."""

    def __init__(self, package: Path) -> None:
        self._on = False
        self._turns: list[tuple[dict[str, None], dict[Move, None]]] = []
        self._root = f"{package}{os.sep}"
        self._names: dict[str, str] = {}
        self._seen: set[object] = set()

    def begin(self) -> None:
        """Begin a turn."""
        self._turns.append(({}, {}))
        self._seen.clear()
        self._on = True

    def end(self) -> None:
        """End it."""
        self._on = False

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Trace nothing meanwhile."""
        was, self._on = self._on, False
        yield
        self._on = was

    def found(self) -> dict[str, list[Any]]:
        """The files that ran, and the moves that were made, in every turn; in the order of the last one."""
        files, moves = self._turns[-1]
        return {
            "files": [file for file in files if all(file in turn[0] for turn in self._turns)],
            "moves": [move for move in moves if all(move in turn[1] for turn in self._turns)],
        }

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if not self._on:
            return
        if event == "c_call":
            if str(getattr(arg, "__module__", "")).startswith("kraftlake.kernels"):
                self._note(COMPILED, arg.__name__, frame)
        elif event == "call" and (file := self._name_of(frame)) not in ("", MAIN):
            self._note(file, frame.f_code.co_qualname, frame.f_back)

    def _note(self, file: str, function: str, caller: FrameType | None) -> None:
        files, moves = self._turns[-1]
        key = (file, function, caller and caller.f_code)
        if key in self._seen:
            return
        while caller is not None and not self._name_of(caller):
            caller = caller.f_back
        frame = caller
        while frame is not None:
            if frame.f_code.co_name == "<module>" and self._name_of(frame) not in ("", MAIN):
                return  # a file that is being imported
            frame = frame.f_back
        self._seen.add(key)
        files[file] = None
        before = self._name_of(caller) if caller is not None else MAIN
        if caller is not None and before != MAIN and room_of(before) != room_of(file):
            moves[before, caller.f_code.co_qualname, file, function] = None

    def _name_of(self, frame: FrameType) -> str:
        """The file below the package's folder; empty for another's, and for what is being imported."""
        path = frame.f_code.co_filename
        name = self._names.get(path)
        if name is None:
            name = self._names[path] = path.removeprefix(self._root) if path.startswith(self._root) else ""
        return name


def room_of(file: str) -> str:
    return file.split("/", maxsplit=1)[0].removesuffix(".py")


def command(trace: Trace, *arguments: str | Path) -> None:
    """Run `kraftlake` with arguments in this process, traced."""
    sys.argv = ["kraftlake", *map(str, arguments)]
    trace.begin()
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
            runpy.run_module("kraftlake", run_name="__main__")
    finally:
        trace.end()
    assert out.getvalue(), "it prints what it did"


def untraced(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "kraftlake", *arguments], check=True, stdout=subprocess.DEVNULL)


def import_log(trace: Trace, folder: Path) -> None:
    """`kraftlake import` of a sample into a new lake."""
    command(trace, "import", SAMPLE, folder / "lake", "--json")


def image_at(trace: Trace, folder: Path) -> None:
    """`kraftlake image LAKE --at OFFSET` of that lake."""
    untraced("import", SAMPLE, folder / "lake")
    command(trace, "image", folder / "lake", "--at", "100", "--json")


def tables(trace: Trace, folder: Path) -> None:
    """`kraftlake tables` of that lake: every table, and the snapshots."""
    untraced("import", SAMPLE, folder / "lake")
    command(trace, "tables", folder / "lake", "--json")


def created_topic(trace: Trace, folder: Path) -> None:
    """A client creates a topic at a cluster of a controller and a broker, until the broker leads it."""
    from confluent_kafka.admin import NewTopic

    from tests.server.broker.lake_cluster import lake_cluster

    def is_led(name: str) -> bool:
        topic = cluster.members[1].server.broker.cache.image.topics.get_topic(name)
        return topic is not None and topic.partitions[0].leader == 1 and (folder / "broker-1" / f"{name}-0").is_dir()

    with lake_cluster(folder, brokers=()) as cluster:
        cluster.start_broker(1, {"broker.heartbeat.interval.ms": "1000"})
        cluster.await_unfenced(1)
        admin = cluster.admin()
        for number in range(TOPICS):
            name = f"orders-{number}"
            trace.begin()
            admin.create_topics([NewTopic(name, 1, 1)])[name].result(60)
            cluster.wait_for(lambda name=name: is_led(name), "the topic to be led")
            time.sleep(0.1)  # the broker's last steps, which nothing shows
            trace.end()


@contextlib.contextmanager
def controlled(trace: Trace, folder: Path) -> Iterator[tuple[Any, Callable[..., None]]]:
    """A lake with a claimed epoch, and what appends a record to it by a handle."""
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.records.batch import RecordBatch
    from kraftlake.records.metadata_records import NoOpRecord
    from kraftlake.records.serde import ApiMessageAndVersion

    def append(handle: Any, epoch: int = 1) -> None:
        records = [ApiMessageAndVersion(NoOpRecord(), 0)]
        handle.append([RecordBatch.of(end_of(handle), epoch, 1_700_000_000_000, records)], epoch=epoch)

    def end_of(handle: Any) -> int:
        with trace.paused():
            end: int = handle.end_offset
        return end

    log = MetadataLog.create(folder / "lake", role="controlled")
    log.claim(1)
    append(log)
    yield log, append


def append(trace: Trace, folder: Path) -> None:
    """An append of one record by a writer that has appended before."""
    with controlled(trace, folder) as (log, append):
        trace.begin()
        append(log)
        trace.end()


def first_append(trace: Trace, folder: Path) -> None:
    """A writer's claim and its first append: the lake is checked before them."""
    from kraftlake.metadata_log.log import MetadataLog

    with controlled(trace, folder) as (log, append):
        other = MetadataLog.open(log.path)
        trace.begin()
        append(other, other.claim(1))
        trace.end()


def fenced_append(trace: Trace, folder: Path) -> None:
    """An append that loses to another writer's claim."""
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.runtime.errors import FencedEpochError

    with controlled(trace, folder) as (log, append):
        MetadataLog.open(log.path).claim(2)
        trace.begin()
        with contextlib.suppress(FencedEpochError):
            append(log)
            raise AssertionError("a writer of an earlier epoch was not fenced")
        trace.end()


def append_after_compaction(trace: Trace, folder: Path) -> None:
    """An append that loses to a maintenance commit and is tried again behind it."""
    from kraftlake.metadata_log.maintenance.upkeep import Upkeep
    from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy

    with controlled(trace, folder) as (log, append):
        for _ in range(9):
            append(log)
        version = log.version
        Upkeep(log.path, policy=UpkeepPolicy(compact_from=2)).run()
        trace.begin()
        append(log)
        trace.end()
        assert log.version > version + 1, "nothing was compacted"


def group_commit(trace: Trace, folder: Path) -> None:
    """An append by a group commit."""
    from kraftlake.metadata_log.append.group_commit import GroupCommit
    from kraftlake.records.metadata_records import NoOpRecord
    from kraftlake.records.serde import ApiMessageAndVersion

    with controlled(trace, folder) as (log, _), GroupCommit(log, 1) as group:
        trace.begin()
        group.append([ApiMessageAndVersion(NoOpRecord(), 0)]).result()
        trace.end()


WAYS: dict[str, Callable[[Trace, Path], None]] = {
    "import": import_log,
    "image --at": image_at,
    "tables": tables,
    "created topic": created_topic,
    "append": append,
    "first append": first_append,
    "fenced append": fenced_append,
    "append after compaction": append_after_compaction,
    "group commit": group_commit,
}


def run_here(way: str) -> None:
    """Run a way in this process, and print what was traced."""
    import kraftlake

    assert kraftlake.__file__
    trace = Trace(Path(kraftlake.__file__).parent)
    threading.setprofile(trace)
    sys.setprofile(trace)
    with tempfile.TemporaryDirectory(prefix="kraftlake-way-") as folder:
        WAYS[way](trace, Path(folder))
    sys.setprofile(None)
    print(json.dumps(trace.found()))


def run(tree: Path, way: str) -> dict[str, Any]:
    """What is traced of a way in a process that has the code of a tree."""
    done = subprocess.run(
        [sys.executable, "-P", __file__, "--here", way],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{way} failed in {tree}: {done.stderr[-2000:]}")
    traced: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return traced


def picture(way: str, traced: dict[str, Any], *, files: bool) -> str:
    """A way as text: each room in the order in which it is reached, its files, and the rooms that it calls."""
    rooms = Counter(room_of(file) for file in traced["files"])
    calls: dict[str, Counter[str]] = {room: Counter() for room in rooms}
    for before, _, after, _ in traced["moves"]:
        calls[room_of(before)][room_of(after)] += 1
    total = f"{rooms.total()} files, {len(rooms)} rooms, {len(traced['moves'])} moves"
    lines = [f"{way}: {total}"]
    for room, count in rooms.items():
        called = "  ".join(f"{other} {number}" for other, number in calls[room].most_common())
        lines.append(f"  {room:16}{count:4}  → {called}" if called else f"  {room:16}{count:4}")
        if files:
            lines += [f"      {file}" for file in traced["files"] if room_of(file) == room]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.record_path", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--tree", type=Path, default=ROOT, help="the checkout whose code is traced; this one by default"
    )
    parser.add_argument("--only", nargs="+", choices=WAYS, default=[*WAYS], metavar="WAY", help=", ".join(WAYS))
    parser.add_argument("--files", action="store_true", help="list the files")
    parser.add_argument("--json", action="store_true", help="print JSON: the files and the moves of each way")
    parser.add_argument("--page", type=Path, help="a Markdown page, whose last code block becomes the pictures")
    parser.add_argument("--here", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        run_here(options.here)
        return
    traced = {way: run(options.tree.resolve(), way) for way in options.only}
    if options.json:
        print(json.dumps(traced, indent=1))
        return
    pictures = "\n\n".join(picture(way, found, files=options.files) for way, found in traced.items())
    if options.page:
        head, _, after = options.page.read_text("utf-8").rpartition("```\n")
        options.page.write_text(f"{head.rpartition('```')[0]}```\n{pictures}\n```\n{after}", "utf-8")
        return
    print(pictures)


if __name__ == "__main__":
    main()
