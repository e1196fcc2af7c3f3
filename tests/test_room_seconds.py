"""The budget of the rooms' tests."""

from __future__ import annotations

from pathlib import Path

from tests.room_seconds import BUDGET, line, room_of

HERE = Path(__file__).parent


def test_every_room_with_tests_has_a_budget_and_no_other() -> None:
    rooms = {room_of(f"tests/{path.relative_to(HERE)}::test") for path in HERE.rglob("test_*.py")}
    assert set(BUDGET) == rooms


def test_three_workers_take_twelve_minutes_for_all_of_them() -> None:
    assert sum(BUDGET.values()) <= 3 * 12 * 60


def test_a_room_is_a_folder_or_the_tests_themselves() -> None:
    assert room_of("tests/cli/shell/test_prompt.py::test_a[x/y]") == "cli"
    assert room_of("tests/test_doors.py::test_a[x/y]@spark") == "tests"


def test_what_is_over_its_budget_is_marked() -> None:
    assert line("image", 20, 10.04, 20) == "image                20 tests     10.0 s of    20 s"
    assert line("image", 20, 20.06, 20).endswith("20.1 s of    20 s  over")
