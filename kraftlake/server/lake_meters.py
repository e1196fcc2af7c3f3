"""The metrics of lakes, each with the label `cluster`, and the thread that measures them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kraftlake.runtime.clock import Clock
from kraftlake.runtime.errors import KraftlakeError, sentence_of
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.metrics import MetricName, MetricsRegistry, Tags
from kraftlake.server.lake_meter import LakeFigures, LakeMeter, Measured

_SECONDS: Final = 15.0


class LakeMeters:
    """Measures lakes in turn; `figures` are the last ones of each cluster, none before the first measurement.

    A lake that can't be read keeps no figures, and its faults are counted and logged.
    """

    def __init__(self, lakes: Mapping[str, str], clock: Clock) -> None:
        """Initialize with the lakes' places by cluster."""
        self._meters = {cluster: LakeMeter(lake) for cluster, lake in lakes.items()}
        self._clock = clock
        self.figures: dict[str, LakeFigures] = {}
        self.faults = dict.fromkeys(lakes, 0)

    def register(self, registry: MetricsRegistry) -> None:
        """Register `kraftlake_lake_…`."""
        register_lakes(registry, self.figures.copy, self._clock)
        registry.gauge(
            MetricName("kraftlake", "lake", "measure_faults"),
            "How often the lake could not be read to measure it.",
            lambda: {_tags(cluster): count for cluster, count in self.faults.items()},
        )

    def measure(self, cluster: str) -> None:
        """Measure the lake of a cluster."""
        try:
            self.figures[cluster] = self._meters[cluster].measure()
        except (KraftlakeError, OSError) as fault:
            self.figures.pop(cluster, None)
            self.faults[cluster] += 1
            get_logger(__name__).warning("lake_not_measured", cluster=cluster, reason=sentence_of(fault))

    def run_alongside(self) -> Callable[[], None]:
        """Measure all lakes again and again, in a thread; returns the function that ends it."""
        stop = threading.Event()

        def run() -> None:
            while True:
                for cluster in self._meters:
                    if stop.is_set():
                        return
                    self.measure(cluster)
                if stop.wait(_SECONDS):
                    return

        thread = threading.Thread(target=run, name="kraftlake-lake-meters", daemon=True)
        thread.start()

        def end() -> None:
            stop.set()
            thread.join()

        return end


def register_lakes(registry: MetricsRegistry, measured: Measured, clock: Clock) -> None:
    """Register the figures of lakes; ages are counted from `clock`."""

    def by_cluster(read: Callable[[LakeFigures], Iterator[tuple[Tags, float]]]) -> Callable[[], dict[Tags, float]]:
        return lambda: {
            (*_tags(cluster), *tags): value for cluster, figures in measured().items() for tags, value in read(figures)
        }

    def age(figures: LakeFigures) -> Iterator[tuple[Tags, float]]:
        if figures.timestamp >= 0:
            yield (), max(0.0, (clock.milliseconds() - figures.timestamp) / 1000)

    for name, text, number in _NUMBERS:
        read = by_cluster(lambda figures, number=number: iter([((), number(figures))]))  # type: ignore[misc]
        registry.gauge(MetricName("kraftlake", "lake", name), text, read)
    registry.gauge(
        MetricName("kraftlake", "lake", "age_seconds"),
        "Age of the log's newest record by the clock of this process, s.",
        by_cluster(age),
    )
    for name, text in _OF_TABLES.items():
        read = by_cluster(lambda figures, name=name: _of_tables(figures, name))  # type: ignore[misc]
        registry.gauge(MetricName("kraftlake", "lake", name), text, read)
    registry.gauge(
        MetricName("kraftlake", "lake", "table_lag_offsets"),
        "Offsets of the log that a derived table does not cover yet.",
        by_cluster(_lags),
    )


_NUMBERS: Final[tuple[tuple[str, str, Callable[[LakeFigures], float]], ...]] = (
    ("start_offset", "The first offset of the log.", lambda figures: figures.start_offset),
    ("end_offset", "The offset after the last one of the log.", lambda figures: figures.end_offset),
    ("commits", "Versions of the log's Delta table.", lambda figures: figures.commits),
    (
        "chain_checked_offset",
        "The end of the rows that were hashed again and found as appended.",
        lambda figures: figures.chain_end,
    ),
    ("chain_checks", "How often new rows were hashed again.", lambda figures: figures.chain_checks),
    ("chain_faults", "How often rows differed from what was appended.", lambda figures: figures.chain_faults),
    ("shortened", "How often the log ended before an offset that it had held.", lambda figures: figures.shortened),
)
_OF_TABLES: Final = {
    "files": "Live data files of a table.",
    "bytes": "Bytes of the live data files of a table.",
    "unchecked_commits": "Commits of a table since its last checkpoint: upkeep bounds them.",
}


def _of_tables(figures: LakeFigures, name: str) -> Iterator[tuple[Tags, float]]:
    for table, numbers in figures.tables.items():
        yield (("table", table),), getattr(numbers, name)


def _lags(figures: LakeFigures) -> Iterator[tuple[Tags, float]]:
    for table, covered in figures.covered.items():
        yield (("table", table),), max(0, figures.end_offset - 1 - covered)


def _tags(cluster: str) -> Tags:
    return (("cluster", cluster),)
