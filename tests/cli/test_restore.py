"""`kraftlake restore` as a user runs it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import kraftlake
from tests.cli.running import DIRECTORY, LEGACY, fault, run
from tests.kafka_files.node.made_broker import make_broker
from tests.waiting import PATIENCE, is_readable


def test_it_says_what_is_lost_and_what_the_nodes_need(tmp_path: Path) -> None:
    target = tmp_path / "restored"
    words = (
        "restore",
        DIRECTORY,
        "--at-offset",
        4592,
        "--to",
        target,
        "--voter",
        "2@c2:9094",
        "--voter",
        "1@[::1]:9093",
    )
    printed = run(*words, "--yes").stdout
    assert "restore    offset 4592 of 2026-11-21 07:49:37" in printed
    assert "known      up to offset 5736" in printed
    assert "offset 5736 → 4592" in printed
    assert "from offset 1005737, epoch 1000002" in printed
    assert "controller.quorum.bootstrap.servers=[::1]:9093,c2:9094 on each node" in printed
    assert kraftlake.open(target / "2").image().offset == 1005736
    assert "exists already" in fault(*words, "--yes")
    static = run(*words[:5], tmp_path / "static", *words[6:], "--kraft-version", 0, "--yes").stdout
    assert "controller.quorum.voters=1@[::1]:9093,2@c2:9094 on each node" in static


def test_at_the_end_of_the_log_nothing_is_lost(tmp_path: Path) -> None:
    printed = run("restore", DIRECTORY, "--to", tmp_path / "a", "--voter", "1@h:1", "--yes").stdout
    assert "nothing that is known" in printed


def test_the_report_as_json(tmp_path: Path) -> None:
    ids = kraftlake.open(DIRECTORY).image().cluster.brokers[2].directories
    homes = [make_broker(tmp_path / str(id_), 2, directory_id=id_, cluster_id="VXUoBgBGTaWWfCM4Toybuw") for id_ in ids]
    target = tmp_path / "restored"
    result = run(
        "restore", DIRECTORY, "--at-time", "2026-11-21T07:46:16.256Z", "--to", target, "--voter", "2@h:9093",
        *(word for home in homes for word in ("--broker-dir", home)), "--margin", 10, "--yes", "--json",
    )  # fmt: skip
    form = json.loads(result.stdout)
    assert "warning: of brokers 1, 3 and 4 not all log directories are given" in result.stderr
    checkpoint = target / "2" / "__cluster_metadata-0" / form["checkpoint"]
    assert form.pop("sizeInBytes") == checkpoint.stat().st_size
    assert len(form.pop("lost")["topics"]["removed"]) > 0
    assert len(form.pop("warnings")) == len(result.stderr.splitlines())
    for kind in ("moved", "lacking", "unseen", "missing", "leaderless"):
        assert isinstance(form.pop(kind), list)
    assert form == {
        "to": str(target), "clusterId": "VXUoBgBGTaWWfCM4Toybuw", "offset": 458, "timestamp": 1795247176256,
        "newestOffset": 5736, "newestIn": "__cluster_metadata-0", "logsOf": [2],
        "checkpoint": checkpoint.name, "endOffset": 5747, "epoch": 12, "margin": 10, "nextProducerId": 6010,
        "kraftVersion": 0, "listener": "CONTROLLER",
        "voters": [{"id": 2, "host": "h", "port": 9093, "directoryId": str(ids[0])}], "brokers": [1, 2, 3, 4],
        "topics": 21, "partitions": 75, "strays": {}, "otherHistories": {},
    }  # fmt: skip


def test_what_can_not_be_is_one_sentence(tmp_path: Path) -> None:
    words = ("restore", DIRECTORY, "--to", tmp_path / "restored", "--voter", "1@h:1")
    assert "give --yes" in fault(*words, code=2)
    for voter in ("1", "x@h:1", "1@h", "1@h:1,g:2", "4294967296@h:1", "-1@h:1"):
        assert "controller" in fault(*words, "--voter", voter, "--yes", code=2).lower() or voter == "1@h"
    assert "needs metadata.version 3.9-IV0" in fault(*words, "--at-offset", 458, "--kraft-version", 1, "--yes", code=2)
    assert "no meta.properties" in fault(*words, "--broker-dir", tmp_path, "--yes")
    assert "metadata.version" in fault("restore", LEGACY, "--at-offset", 5, *words[2:], "--yes")
    assert not list(tmp_path.iterdir())


@contextmanager
def killed(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is there no longer at the end of the block, however that ends."""
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"\n", 130)])
def test_it_asks_on_a_terminal(tmp_path: Path, answer: bytes, code: int) -> None:
    target = tmp_path / "restored"
    words = [sys.executable, "-m", "kraftlake", "restore", str(DIRECTORY), "--to", str(target), "--voter", "1@h:1"]
    main, end = pty.openpty()
    with killed(subprocess.Popen(words, stdin=end, stdout=end, stderr=end, start_new_session=True)) as process:
        os.close(end)
        said = b""
        while b"[y/N]" not in said:
            assert is_readable(main)
            said += os.read(main, 65536)
        assert not target.exists()
        os.write(main, answer)
        assert process.wait(PATIENCE) == code
    os.close(main)
    assert b"nothing that is known" in said
    assert target.exists() == (code == 0)
