"""pyarrow does not import pandas in a process that kraftlake starts."""

from __future__ import annotations

import subprocess
import sys


def _printed(code: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


LEFT_OUT = """
import sys
from kraftlake.runtime.process_setup import skip_pandas
finders = list(sys.meta_path)
skip_pandas()
assert sys.meta_path == finders
import pyarrow as pa
made = pa.array(["a", None]), pa.array([1, 2]).to_numpy(), pa.scalar(3)
assert "pandas" not in sys.modules
"""


def test_pyarrow_converts_python_objects_without_pandas() -> None:
    _printed(LEFT_OUT)


def test_an_explicit_import_of_pandas_works() -> None:
    code = LEFT_OUT + "print(list(pa.table({'x': [5, 6]}).to_pandas()['x']), len(__import__('pandas').Series([1])))"
    assert _printed(code) == "[5, 6] 1"


def test_with_pandas_imported_pyarrow_uses_it() -> None:
    code = (
        "import pandas\n"
        "from kraftlake.runtime.process_setup import skip_pandas\n"
        "skip_pandas()\n"
        "import pyarrow as pa\n"
        "print(pa.array(pandas.Series([1.0, float('nan')])).null_count)"
    )
    assert _printed(code) == "1"
