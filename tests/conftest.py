"""Test profiles: `make test` runs the quick one, `make test-long` the full one (KRAFTLAKE_TESTS=long)."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.class_archive import archive_options
from tests.files_in_memory import choose_files_in_memory
from tests.room_seconds import RoomSeconds, room_of
from tests.seed import seed_of_run

pytest_plugins = [
    "tests.spark_cluster",
    "tests.spark_session",
    "tests.metadata_log.object_store",
    "tests.wheel",
    "tests.kernels.guarded_builds",
]

FAST_ROOMS = {"delta", "generate", "image", "kafka_files", "publisher", "records", "runtime", "settings"}
"""The rooms of pure logic and files, whose tests `make check` runs."""

settings.register_profile(
    "quick", max_examples=50, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", parent=settings.get_profile("quick"), max_examples=300)
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
settings.load_profile("long" if LONG else "quick")
if not LONG:
    choose_files_in_memory()
with suppress(KraftlakeError):  # there is no Java or no Spark, which the tests that need one say
    if options := archive_options():
        os.environ.setdefault("SPARK_SUBMIT_OPTS", options)


AT_STARTUP = Path(__file__).with_name("at_startup")


def pytest_configure(config: pytest.Config) -> None:
    """Print what the rooms take where the reports of all workers come together.

    Where tests run, and not where xdist starts its workers: give the processes that they start `at_startup`.
    """
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(RoomSeconds(), "room_seconds")
    if config.getoption("dist", "no") == "no":
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(AT_STARTUP), os.environ.get("PYTHONPATH"))))


def pytest_report_header() -> str:
    """The seed of the logs that Kafka judges: chosen here, and inherited by the workers."""
    seed = seed_of_run()
    return f"logs for Kafka: seed {seed} (KRAFTLAKE_SEED={seed} repeats them)"


@pytest.fixture(autouse=True)
def _logs_as_nobody_chose_them() -> Iterator[None]:
    """What a test, or a command that it runs, chooses for structlog is over with it."""
    yield
    if "structlog" in sys.modules:
        sys.modules["structlog"].reset_defaults()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The rooms without fast tests need not be read where `-m fast` runs those alone."""
    is_beside = collection_path.parent == Path(__file__).parent and collection_path.name not in FAST_ROOMS
    return True if is_beside and config.option.markexpr == "fast" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a JVM share a worker: those of Spark's session, of Spark's cluster, and of Kafka's own classes.

    At full size those of a module do, but for Spark's cluster: one worker would take most of a room's time. So do those
    of a module with something that is made once, since each worker would make it. The tests without a JVM are fast in
    some rooms.
    """
    for item in items:
        if room_of(item.nodeid) in FAST_ROOMS and not item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.fast)
        if item.get_closest_marker("spark"):
            fixtures = getattr(item, "fixturenames", ())
            of_spark = "spark" in item.nodeid or room_of(item.nodeid) == "tables" or "spark" in fixtures
            one_worker = item.nodeid.partition("::")[0] if LONG else "spark" if of_spark else "kafka"
            group = "cluster" if "spark_cluster" in fixtures else one_worker
            item.add_marker(pytest.mark.xdist_group(group))
        elif not item.get_closest_marker("xdist_group") and shares_in_module(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def pytest_collection_finish() -> None:
    """What is collected lives until the end; looking for garbage in cycles took a seventh of the time."""
    gc.freeze()
    gc.set_threshold(700, 10, 1_000)


def shares_in_module(item: pytest.Item) -> bool:
    """Whether a test uses a fixture that is made once for its module."""
    fixtures: dict[str, Sequence[pytest.FixtureDef[object]]] = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]
    return any(fixture.scope == "module" for made in fixtures.values() for fixture in made)
