"""Python imports this first in each process that a test starts, for the folder is on its PYTHONPATH.

Commands and nodes have no hypothesis there, as where they are installed: kio registers strategies where it finds one,
which takes a node half of its start.
"""

import sys

if {"kraftlake", "kraftlake.cli"} & {*sys.orig_argv}:
    sys.modules["hypothesis"] = None  # type: ignore[assignment]
