"""Generates the history of a cluster of any size: seeded logs for benchmarks, demonstrations and tests.

`generate_lake(path, plan)` is the entry point. Source of the records: org.apache.kafka.controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.generate.lake import Episode, GenerateReport, generate_lake
    from kraftlake.generate.plan import PATTERNS, Plan

__all__ = ["PATTERNS", "Episode", "GenerateReport", "Plan", "generate_lake"]


__getattr__, __dir__ = lazy_exports(__name__, __all__)
