"""Fuzz targets by libFuzzer, guided by the coverage of kraftlake's Python.

    python -m tests.fuzzing TARGET[,TARGET…] [OPTIONS] [FOLDER]    # -max_total_time=60 …; new inputs go into FOLDER
    python -m tests.fuzzing.corpus TARGET FOLDER                   # keeps the shortest of these inputs

Branches of the kernels guide it, too, in the build that `tests.fuzzing.long_run` makes.

Of several targets the first byte of an input chooses one. A finding ends the process with exit code 77 and a file
`crash-…`, which repeats it where it is given in place of FOLDER.
"""

from __future__ import annotations

import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import atheris

from tests.files_in_memory import choose_files_in_memory
from tests.fuzzing.corpus import kept_inputs

# No limit of memory: a child inherits the peak of the process that starts it, and `Target.check` has one of each input,
# and of its CPU time. The time by a clock is for inputs that never end.
LIMITS = ("-rss_limit_mb=0", "-timeout=300", "-max_len=8192", "-print_final_stats=1")


def target(name: str) -> Any:
    """The target of a name; few modules are imported for it, as each takes time to be instrumented."""
    modules = (
        import_module(f"tests.fuzzing.of_{what}") for what in ("logs", "replicas", "caches", "wire", "files", "stores")
    )
    return next(module.TARGETS[name] for module in modules if name in module.TARGETS)


def fuzz(names: list[str], options: list[str]) -> None:
    """Fuzz until an option of libFuzzer's says stop; does not return."""
    with atheris.instrument_imports(include=["kraftlake"]):
        chosen = [target(name) for name in names]

    def one(data: bytes) -> None:
        if len(chosen) == 1:
            chosen[0].check(data)
        elif data:
            chosen[data[0] % len(chosen)].check(data[1:])

    with tempfile.TemporaryDirectory(prefix="kraftlake-seeds-") as seeds:
        for number, name in enumerate(names):
            first = bytes([number]) if len(names) > 1 else b""
            for place, seed in enumerate((*chosen[number].seeds(), *kept_inputs(name))):
                Path(seeds, f"{number}-{place}").write_bytes(first + seed)
        repeats = any(Path(word).is_file() for word in options)
        atheris.Setup([sys.argv[0], *LIMITS, *options, *([] if repeats else [seeds])], one)
        atheris.Fuzz()


if __name__ == "__main__":
    choose_files_in_memory()
    fuzz(sys.argv[1].split(","), sys.argv[2:])
