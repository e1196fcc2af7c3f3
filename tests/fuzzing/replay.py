"""Read seeds, kept inputs and those of a folder, on any build of the kernels.

python -m tests.fuzzing.replay TARGET[,TARGET…] [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.fuzzing.corpus import kept_inputs
from tests.fuzzing.targets import TARGETS


def main(names: str, *folders: str) -> None:
    count = 0
    found = [path.read_bytes() for folder in folders for path in sorted(Path(folder).iterdir())]
    for name in names.split(","):
        for data in (*TARGETS[name].seeds(), *kept_inputs(name), *found):
            TARGETS[name].check(data)
            count += 1
    print(f"{count} inputs read")


if __name__ == "__main__":
    main(*sys.argv[1:])
