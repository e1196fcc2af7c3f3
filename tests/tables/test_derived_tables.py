"""A derived table that is not there, or a column that it has not, is reported with the way out, without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.location import lake_location
from kraftlake.runtime.errors import LakeError, UsageError
from kraftlake.tables.derived_tables import columns_of, derived_table
from kraftlake.tables.jobs import JOBS, Job
from tests.at_least_one import at_least_one

SCHEMA = pa.schema([pa.field("offset", pa.int64(), nullable=False), pa.field("kind", pa.string())])


@pytest.mark.parametrize("job", [job for job in JOBS.values() if job.tables], ids=lambda job: job.name)
def test_a_table_that_is_not_there_names_the_command_that_makes_it(job: Job, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    MetadataLog.create(lake)
    for table in at_least_one(job.tables):
        with pytest.raises(LakeError, match=rf"lake has no {table}/ yet: run `kraftlake tables .*/lake {table}` first"):
            derived_table(lake_location(lake), table)


def test_what_no_job_makes_has_no_way_out(tmp_path: Path) -> None:
    MetadataLog.create(tmp_path / "lake")
    with pytest.raises(LakeError, match=r"lake has no mine/\.$"):
        derived_table(lake_location(tmp_path / "lake"), "mine")


def test_columns_come_in_the_order_in_which_they_are_asked_for() -> None:
    assert columns_of("events", SCHEMA, None) == SCHEMA
    assert columns_of("events", SCHEMA, ["kind", "offset"]) == pa.schema([SCHEMA.field(1), SCHEMA.field(0)])
    assert columns_of("events", SCHEMA, []) == pa.schema([])


def test_what_is_no_column_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"^events/ has no column 'who': it is one of offset, kind$"):
        columns_of("events", SCHEMA, ["offset", "who"])
