"""Makes sure that Chromium and its driver are there: `make test` runs this first.

Found: says nothing, exit 0. Missing, where apt can be run as root without asking: installs them. Else it says in one
sentence what to install, exit 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

PROGRAMS = ("chromium", "chromedriver")
PACKAGES = ("chromium", "chromium-driver")


def say(line: str) -> None:
    """Talk goes to stderr: stdout is for what `make` was asked for."""
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """0 when both are there in the end, else 1."""
    if _is_there():
        return 0
    if shutil.which("apt-get") is not None and os.geteuid() == 0:
        say(f"installing {' and '.join(PACKAGES)} with apt (about 110 MB, once)")
        _apt("update")
        if _apt("install", "-y", "--no-install-recommends", *PACKAGES) and _is_there():
            return 0
    say(
        "Chromium and its driver are not here, and the tests of `kraftlake page` need them: on Debian "
        f"`apt-get install {' '.join(PACKAGES)}` brings them."
    )
    return 1


def _is_there() -> bool:
    return all(shutil.which(program) is not None for program in PROGRAMS)


def _apt(*arguments: str) -> bool:
    """Run apt-get without its output; whether it succeeded."""
    command = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", *arguments]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
