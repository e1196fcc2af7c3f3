"""What docs/operations.md tells of: a sound backup of a lake while a writer appends, and a client's properties."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

import kraftlake
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.protocol.client_config import parse_client_config
from kraftlake.replay.imports.import_log import import_source
from kraftlake.runtime.java_properties import parse_properties
from tests.metadata_log.live_writer import writing
from tests.metadata_log.log_batches import noop_batch
from tests.replay.sample_logs import directory_of

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
COPIES = 12 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 1

TRIES = 5
"""The page says to copy again where `verify` refuses a copy: a listing beside a fast writer may miss a version."""


def test_a_lake_is_backed_up_as_the_page_says_while_a_writer_appends(tmp_path: Path) -> None:
    section = PAGE.read_text().split("\n## Backing up a lake\n")[1].split("\n## ")[0]
    script = section.split("```sh\n")[1].split("```")[0]
    import_source(directory_of("kafka-4.4"), tmp_path / "LAKE")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with writing(tmp_path / "LAKE", upkeep_each=150):
        for number in range(COPIES):
            before = MetadataLog.open(tmp_path / "LAKE").end_offset
            for again in range(TRIES):
                place = tmp_path / f"copy-{number}-{again}"
                done = subprocess.run(
                    ["bash", "-ec", script.replace("COPY", place.name)],
                    cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
                )  # fmt: skip
                if done.returncode == 0:
                    break
            assert done.returncode == 0, done.stdout + done.stderr
            assert done.stdout.endswith("sound\n")
            copy = MetadataLog.open(place)
            assert copy.end_offset >= before
            copy.append([noop_batch(copy.end_offset, epoch=copy.epoch)])
            assert kraftlake.open(place).verify().sound
    assert MetadataLog.open(tmp_path / "LAKE").end_offset > before


def test_the_properties_of_the_page_are_a_configuration() -> None:
    section = PAGE.read_text().split("\n## Listeners with TLS and logins\n")[1].split("\n## ")[0]
    example = section.split("```properties\n")[1].split("```")[0]
    config = parse_client_config(parse_properties(example.encode()), "client.properties")
    assert config.principal == "User:kraftlake"
    assert config.tls is not None


def test_events_are_watched_from_python_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    section = PAGE.read_text().split("\n## Watching events as they are committed\n")[1].split("\n## ")[0]
    program = section.split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    import_source(directory_of("kafka-4.4"), tmp_path / "LAKE")
    endless = 'kraftlake.open("LAKE").watch("now-15m")'
    assert endless in program
    exec(program.replace(endless, f"islice({endless}, 3)"), {"kraftlake": kraftlake, "islice": islice})
    assert len(capsys.readouterr().out.splitlines()) == 3
