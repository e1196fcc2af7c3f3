"""Makes up the history of a cluster of any size: seeded logs for benchmarks, demonstrations and tests.

`generate_lake(path, plan)` is the door. Source of what a controller writes: org.apache.kafka.controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kraftlake.generate.lake import Episode, GenerateReport, generate_lake
    from kraftlake.generate.plan import PATTERNS, Plan

__all__ = ["PATTERNS", "Episode", "GenerateReport", "Plan", "generate_lake"]

_HOMES = {"PATTERNS": "plan", "Plan": "plan", "Episode": "lake", "GenerateReport": "lake", "generate_lake": "lake"}


def __getattr__(name: str) -> Any:
    # numpy and pyarrow are imported when something is generated, not when the command line starts.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"kraftlake.generate.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
