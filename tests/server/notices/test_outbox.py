"""The queue of notices: what is in them, what survives a kill, and what happens where there is no room."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kraftlake.runtime.errors import EnvironmentFaultError, UsageError
from kraftlake.server.notices import outbox
from kraftlake.server.notices.outbox import Outbox


def finding(check: str, severity: str = "critical", things: tuple[str, ...] = ("foo-0",)) -> dict[str, Any]:
    return {"check": check, "severity": severity, "things": list(things)}


OFFLINE, FENCED, MILD = finding("offline"), finding("fenced"), finding("fenced", "warning")


def test_a_notice_has_what_appeared_and_cleared_since_the_last_one(tmp_path: Path) -> None:
    box = Outbox(tmp_path / "url.json")
    box.offer("east", [OFFLINE, FENCED], offset=7)
    box.offer("east", [finding("offline", things=("foo-0", "foo-1")), MILD], offset=9)
    box.offer("west", [], offset=1)
    first = box.first()
    assert first is not None
    assert (first["cluster"], first["offset"], first["appeared"], first["cleared"]) == (
        "east",
        7,
        [OFFLINE, FENCED],
        [],
    )
    box.delivered(first)
    second = box.first()
    assert second is not None
    assert (second["offset"], second["appeared"], second["cleared"]) == (9, [MILD], [FENCED])
    assert second["changed"] == [finding("offline", things=("foo-0", "foo-1"))]
    assert second["id"] != first["id"]
    box.delivered(second)
    assert box.first() is None


def test_a_finding_that_spreads_is_news_at_each_doubling_and_one_that_moves_at_once(tmp_path: Path) -> None:
    box = Outbox(tmp_path / "url.json")
    for count in (1, 2, 3, 4, 5, 6, 7, 8, 3, 8):
        box.offer("east", [finding("offline", things=tuple(f"foo-{number}" for number in range(count)))])
    box.offer("east", [finding("offline", things=("bar-0",))])
    box.offer("east", [finding("offline", things=())])
    waiting = json.loads((tmp_path / "url.json").read_bytes())["queue"]
    assert [len(one["changed"][0]["things"]) for one in waiting[1:]] == [2, 4, 8, 1]
    assert waiting[-1]["changed"][0]["things"] == ["bar-0"]


def test_what_was_delivered_and_what_waits_survives_a_kill(tmp_path: Path) -> None:
    box = Outbox(tmp_path / "url.json")
    box.offer("east", [OFFLINE])
    box.offer("west", [FENCED])
    box.delivered(box.first() or {})
    again = Outbox(tmp_path / "url.json")
    assert len(again) == 1
    assert (again.first() or {})["cluster"] == "west"
    again.offer("east", [OFFLINE])
    assert len(again) == 1, "it was delivered before"
    again.offer("east", [])
    assert len(again) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["url.json"]


def test_a_full_queue_defers_and_the_next_notice_has_the_whole_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "LIMIT", 2)
    box = Outbox(tmp_path / "url.json")
    box.offer("east", [OFFLINE])
    box.offer("west", [OFFLINE])
    box.offer("east", [FENCED])
    box.offer("east", [FENCED, MILD])
    assert (len(box), box.deferred) == (2, 2)
    box.delivered(box.first() or {})
    box.offer("east", [FENCED, MILD])
    newest = json.loads((tmp_path / "url.json").read_bytes())["queue"][-1]
    assert (newest["appeared"], newest["cleared"]) == ([FENCED, MILD], [OFFLINE])


def test_a_file_of_others_is_left_alone(tmp_path: Path) -> None:
    for content in ("", "[]", "{}", '{"version": 2}', "x", "[" * 5_000):
        (tmp_path / "url.json").write_text(content)
        with pytest.raises(UsageError, match=r"url\.json is no queue of notices of this release"):
            Outbox(tmp_path / "url.json")
        assert (tmp_path / "url.json").read_text() == content


def test_a_folder_that_is_missing_or_refuses_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFaultError, match="does not exist"):
        Outbox(tmp_path / "none" / "url.json")
    (tmp_path / "some").mkdir()
    box = Outbox(tmp_path / "some" / "url.json")
    (tmp_path / "some").rmdir()
    with pytest.raises(EnvironmentFaultError, match=r"url\.json can't be written: No such file or directory\."):
        box.offer("east", [OFFLINE])
    assert box.first() is None
