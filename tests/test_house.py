"""The house: layers inside the rooms, and the count of code lines."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.imports import PACKAGE, Import, imports_of, modules
from tools.code_lines import code_lines
from tools.import_circles import circles
from tools.import_circles import imports_of as imports_of_files

ROOMS = sorted(f"kraftlake.{path.parent.name}" for path in PACKAGE.glob("*/__init__.py"))


def test_no_circles_of_imports() -> None:
    """Imports within functions and for types alone count too."""
    found = list(circles(imports_of_files(PACKAGE)))
    assert not found, "a circle of imports: " + " → ".join(found[0])


def test_each_group_of_modules_that_import_each_other_has_a_circle() -> None:
    assert not list(circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}))
    found = list(circles({"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"b"}, "e": {"a"}}))
    assert sorted(sorted(set(circle)) for circle in found) == [["a", "b", "c"], ["b", "d"]]


def test_a_name_that_a_door_passes_on_is_imported_from_its_file(tmp_path: Path) -> None:
    package = tmp_path / "package"
    (package / "room").mkdir(parents=True)
    sources = {
        "__init__": "", "room/__init__": "if TYPE_CHECKING:\n    from package.room.a import A\n",
        "room/a": "def f():\n    import package.b\n", "b": "from package.room import A, c\n", "room/c": "import os\n",
    }  # fmt: skip
    for name, source in sources.items():
        (package / f"{name}.py").write_text(source)
    assert imports_of_files(package) == {
        "package": set(), "package.room": {"package.room.a"}, "package.room.a": {"package.b"},
        "package.b": {"package.room.a", "package.room.c"}, "package.room.c": set(),
    }  # fmt: skip


def test_imports_within_functions_count_and_those_for_types_do_not() -> None:
    source = """
from kraftlake.delta.a import x
if TYPE_CHECKING:
    from kraftlake.delta.b import y
else:
    c = LazyModule("kraftlake.delta.c")
def f():
    try:
        import kraftlake.delta.d
    except ImportError:
        from kraftlake.delta import e
"""
    found = {(i.module, i.name, i.typing_only) for i in imports_of("kraftlake.delta.m", source)}
    assert found == {
        ("kraftlake.delta.a", "x", False),
        ("kraftlake.delta.b", "y", True),
        ("kraftlake.delta.c", None, False),
        ("kraftlake.delta.d", None, False),
        ("kraftlake.delta", "e", False),
    }


WITHOUT_SPARK = {
    "__init__": "the door",
    "class_archive": "the archive of classes of Spark's JVMs",
    "executor_environment": "the variables that tasks bring along",
    "fold.__init__": "a docstring",
    "java": "finds the Java that Spark needs",
    "source_faults": "errors as Spark shows those of a Python data source",
    "source_options": "the options of Spark's source, in Spark's spelling",
    "spark_home": "the folder that Spark's launcher starts from",
    "stream_options": "the options and the result of a stream, which the command line reads without pyspark",
}
"""Files of `spark_jobs` that don't import pyspark or py4j, with the reason why they are there."""


def test_spark_jobs_holds_spark_alone() -> None:
    """What runs without Spark belongs into another room."""
    without = set()
    for path in (PACKAGE / "spark_jobs").rglob("*.py"):
        name = ".".join(path.relative_to(PACKAGE / "spark_jobs").with_suffix("").parts)
        if not re.search(r"^ *(from|import) (pyspark|py4j)\b", path.read_text(), re.MULTILINE):
            without.add(name)
    assert without == WITHOUT_SPARK.keys()


def test_code_lines_leave_docstrings_comments_and_blank_lines_out(tmp_path: Path) -> None:
    source = '''"""A module's docstring,
on two lines."""

import os  # code


# a comment
class Thing:
    """Says what it is."""

    text = """a string that is
no docstring"""

    def run(self) -> str:
        """Says what it does."""
        return os.path.join(
            self.text,  # why

            "b",
        )
'''
    assert code_lines(source) == 9
    room = tmp_path / "package" / "room"
    room.mkdir(parents=True)
    (room / "thing.py").write_text(source)
    (room / "other.py").write_text("x = 1\n")
    (tmp_path / "package" / "__init__.py").write_text('"""Nothing."""\n')
    script = Path(__file__).resolve().parents[1] / "tools" / "code_lines.py"
    command = [sys.executable, str(script), str(tmp_path / "package")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [line.split() for line in printed.splitlines()] == [
        ["__init__.py", "1", "0"],
        ["room", "2", "10"],
        ["sum", "3", "10"],
    ]


def _home(imported: Import) -> str:
    """The module that an import needs."""
    submodule = f"{imported.module}.{imported.name}"
    return submodule if submodule in modules() else imported.module
