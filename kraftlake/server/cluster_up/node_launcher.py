"""Becomes a node that does not outlive the process that started it, not even a killed one.

Run as a script: the process id of the parent, then the arguments of `kraftlake`. On Linux the kernel kills the node
with its parent (PR_SET_PDEATHSIG, which survives exec); elsewhere the node continues. No module of the project is
imported.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Bind this process's life to its parent's, and replace the process with the node."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):  # it has ended already
        sys.exit(1)
    # without the current folder on the path of modules, as the command `kraftlake` has it
    os.execv(sys.executable, [sys.executable, "-P", "-m", "kraftlake", *sys.argv[2:]])  # noqa: S606 - this very program


if __name__ == "__main__":
    main()
