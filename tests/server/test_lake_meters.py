"""The metrics of lakes: under names with the cluster, also where a clock was set back or a lake can't be read."""

from __future__ import annotations

import shutil
from pathlib import Path

from structlog.testing import capture_logs

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.metrics import MetricsRegistry
from kraftlake.server.lake_meters import LakeMeters
from tests.server.fake_clusters import small_log
from tests.waiting import wait_for

LAST_MS = small_log()[-1].timestamp
AGE = "kraftlake:type=lake,name=age_seconds,cluster=c"
END = "kraftlake:type=lake,name=end_offset,cluster=c"


def made_lake(folder: Path) -> str:
    MetadataLog.create(folder / "lake", durability="os").append(small_log())
    return str(folder / "lake")


def test_ages_count_by_the_clock_and_never_backwards(tmp_path: Path) -> None:
    lake = made_lake(tmp_path)
    for ahead, age in ((90_000, 90), (-3_600_000, 0)):
        registry, meters = MetricsRegistry(), LakeMeters({"c": lake}, ManualClock(LAST_MS + ahead))
        meters.register(registry)
        meters.measure("c")
        assert registry.value(AGE) == age


def test_a_lake_that_can_not_be_read_has_no_figures_until_it_can(tmp_path: Path) -> None:
    lake, registry = made_lake(tmp_path), MetricsRegistry()
    meters = LakeMeters({"c": lake}, ManualClock(LAST_MS))
    meters.register(registry)
    shutil.move(lake, tmp_path / "away")
    with capture_logs() as logs:
        meters.measure("c")
    assert [(one["event"], one["cluster"]) for one in logs] == [("lake_not_measured", "c")]
    assert registry.value("kraftlake:type=lake,name=measure_faults,cluster=c") == 1
    assert END not in {str(sample.name) for sample in registry.samples()}
    shutil.move(tmp_path / "away", lake)
    meters.measure("c")
    assert registry.value(END) == MetadataLog.open(lake).end_offset


def test_lakes_are_measured_beside_other_work_until_it_ends(tmp_path: Path) -> None:
    meters = LakeMeters({"c": made_lake(tmp_path)}, ManualClock(LAST_MS))
    end = meters.run_alongside()
    wait_for(lambda: "c" in meters.figures)
    end()
