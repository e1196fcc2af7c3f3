"""The nodes that the pages of clusters and controllers start run, and so do the commands beside them."""

from __future__ import annotations

import os
import random
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from itertools import chain, pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from kraftlake.cli.application import application
from kraftlake.runtime.java_properties import parse_properties
from tests.docs.test_blocks import command_lines
from tests.waiting import PATIENCE, wait_for

PORTS = ("9092", "9093", "9094")
BLOCKS = {"cluster.md": 3, "controller.md": 2}
SECURE = Path("LAKE-data/security/librdkafka.properties")
"""What a client of a secure cluster takes."""
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
FEWER = {"--brokers": "2", "--controllers": "1"}
"""The nodes of `cluster up` in the quick run."""
SOON_AGAIN = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 200}
"""A client that comes before a node listens looks again soon, by default after up to ten seconds."""


def free_run() -> dict[str, str]:
    """Free ports of loopback in the place of PORTS, below those of the kernel; four more follow the first."""
    while True:
        first = random.SystemRandom().randrange(20_000, 32_000)
        with ExitStack() as sockets, suppress(OSError):
            for port in range(first, first + 7):
                sockets.enter_context(closing(socket.socket())).bind(("127.0.0.1", port))
            return dict(zip(PORTS, map(str, (first, first + 5, first + 6)), strict=True))


def blocks(page: str) -> list[list[list[str]]]:
    """The commands of a page, from each that makes a lake on."""
    made: list[list[list[str]]] = []
    for words in [shlex.split(line)[1:] for name, line in command_lines() if name == page]:
        if words[0] == "format" or words[:2] == ["cluster", "up"]:
            made.append([])
        made[-1].append(words)
    return made


def here(words: list[str], ports: dict[str, str]) -> list[str]:
    """The words with free ports, a folder of this test, an offset that a new cluster has, and fewer nodes."""
    adapted = [re.sub("|".join(PORTS), lambda port: ports[port[0]], word) for word in words]
    adapted = [{"/data/1": "data-1", "458": "12"}.get(word, word) for word in adapted]
    if LONG or adapted[:2] != ["cluster", "up"]:
        return adapted
    kept = [word for before, word in pairwise(["", *adapted]) if not {before, word} & FEWER.keys()]
    return [*kept, *chain.from_iterable(FEWER.items())]


@contextmanager
def node(words: list[str]) -> Iterator[Path]:
    """A process that a signal ends in order, and the file with what it says."""
    log = Path.cwd() / f"{words[0]}-{len([*Path.cwd().glob('*.txt')])}.txt"
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", "kraftlake", *words], stdout=output, stderr=output)
        try:
            yield log
            assert process.poll() is None, f"{words} has ended"
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
            process.wait()


def all_started(logs: list[Path]) -> None:
    for log in logs:
        wait_for(lambda log=log: log.stat().st_size, f"{log.stem} says that it has started")


def answers(words: list[str]) -> bool:
    expanded = [name for word in words for name in ([*map(str, Path().glob(word))] if "*" in word else [word])]
    done = CliRunner().invoke(application, expanded, prog_name="kraftlake")
    return done.exit_code == 0 and bool(done.stdout.strip())


def has_orders(bootstrap: str) -> bool:
    """Whether the brokers have the topic that the page makes with Kafka's tool, else it is made."""
    secure = parse_properties(SECURE.read_bytes()) if SECURE.exists() else {}
    admin = AdminClient({**secure, **SOON_AGAIN, "bootstrap.servers": bootstrap, "log_level": 2})
    try:
        topics = admin.list_topics(timeout=5).topics
        if "orders" not in topics:
            admin.create_topics([NewTopic("orders", 6)])["orders"].result(timeout=30)
    except KafkaException:
        return False
    return "orders" in topics


@pytest.mark.parametrize(
    ("page", "number"), [(page, number) for page, count in BLOCKS.items() for number in range(count)]
)
def test_the_commands_of_a_page_run_one_after_the_other(
    page: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ports = free_run()
    after: Callable[[], object] = dict
    logs: list[Path] = []
    with ExitStack() as nodes:
        for words in (here(words, ports) for words in blocks(page)[number]):
            if words[0] in ("controller", "broker", "cluster"):
                logs.append(nodes.enter_context(node(words)))
                if words[0] != "controller":
                    after = partial(wait_for, partial(has_orders, f"127.0.0.1:{ports['9092']}"), "a broker serves")
            else:
                all_started(logs)
                after()
                wait_for(partial(answers, words), " ".join(words))
        all_started(logs)
        after()
    assert len(blocks(page)) == BLOCKS[page]
