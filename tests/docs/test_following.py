"""docs/following.md: a client's properties, and the program that watches events."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

import kraftlake
from kraftlake.protocol.client_config import parse_client_config
from kraftlake.replay.imports.import_log import import_source
from kraftlake.runtime.java_properties import parse_properties
from tests.replay.sample_logs import directory_of

PAGE = Path(__file__).parents[2] / "docs" / "following.md"


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
