"""The SQL in the docs and the answers printed behind it: `python -m tests.docs.sql_examples` prints them anew.

An example is a block of SQL and, behind it, a block of text with what Spark shows for it on a lake of the sample log.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from tests.docs.conftest import make_sample_lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(r"```sql\n(?P<sql>.*?)```(?:\n\n```text\n(?P<answer>.*?)```)?", re.DOTALL)
_ROWS = 50


@attrs.frozen
class SqlExample:
    """A block of SQL of a page, by its number there, and the answer that the page gives."""

    page: str
    number: int
    sql: str
    answer: str | None


def sql_examples() -> Iterator[SqlExample]:
    """All of them."""
    for page in sorted(DOCS.glob("*.md")):
        for number, block in enumerate(_BLOCK.finditer(page.read_text("utf-8")), start=1):
            yield SqlExample(page.name, number, block["sql"], block["answer"])


def answer(spark: SparkSession, sql: str, lake: Path) -> str:
    """What Spark shows."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    shown: str = spark.sql(sql.replace("LAKE", str(lake)))._show_string(_ROWS, False)
    return shown.strip() + "\n"


def main() -> None:
    from kraftlake.spark_jobs import spark_session

    spark = spark_session("answers")
    with tempfile.TemporaryDirectory() as folder:
        lake = Path(folder) / "lake"
        make_sample_lake(lake)
        for page in sorted({example.page for example in sql_examples()}):
            text = (DOCS / page).read_text("utf-8")
            text = _BLOCK.sub(lambda m: f"```sql\n{m['sql']}```\n\n```text\n{answer(spark, m['sql'], lake)}```", text)
            (DOCS / page).write_text(text, "utf-8")
    spark.stop()


if __name__ == "__main__":
    main()
