from __future__ import annotations

import subprocess
import sys

import kraftlake.records


def test_the_door_opens_without_heavy_imports() -> None:
    program = (
        "import sys, kraftlake.records\n"
        "print([name for name in ('pyarrow', 'numpy', 'cramjam', 'pyspark', 'rich', 'click') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_everything_behind_the_door_is_there() -> None:
    for name in kraftlake.records.__all__:
        assert hasattr(kraftlake.records, name)
    assert list(kraftlake.records.__all__) == sorted(
        kraftlake.records.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name)
    )
