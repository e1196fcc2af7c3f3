"""The `kraftlake` command: parses the command line, calls the rooms below, and shows their answers.

`main` is the console entry point. A command imports heavy modules only when it needs them: `--help` loads click alone.
"""

from __future__ import annotations

import gc

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process and exit with its code."""
    # Objects of a command live until it ends: collecting garbage after each 700 takes a twentieth of the time.
    gc.set_threshold(200_000, 20, 20)
    try:
        from kraftlake.cli.application import application
        from kraftlake.runtime.process_setup import prevent_numpy_threads
    except KeyboardInterrupt:  # before there is anything that would end the command in an orderly way
        raise SystemExit(130) from None
    prevent_numpy_threads()
    try:
        application.main(prog_name="kraftlake")
    finally:
        gc.freeze()  # an interpreter that ends collects garbage twice: a tenth of the time of a large answer
