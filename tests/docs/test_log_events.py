"""The names of log events are such that a filter of logs takes them as they are."""

from __future__ import annotations

import re

from tests.at_least_one import at_least_one
from tools.log_events import log_events


def test_the_name_of_an_event_is_one_word() -> None:
    names = [event.name for event in at_least_one(log_events())]
    assert [name for name in names if not re.fullmatch(r"({…}_)?[a-z]+(_[a-z]+)*", name)] == []
