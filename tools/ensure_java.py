"""Makes sure that a Java which Spark runs on is there: `make` runs this before anything that needs Spark.

Found: says nothing, exit 0. Missing, on a machine with apt: asks on a terminal; without one and as root installs it;
else says in one sentence what to install, exit 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.spark_jobs.java import java_home

# In the order tried: the release that everything here is tested on, then whatever the distribution has instead.
PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless")


def say(line: str) -> None:
    """Talk goes to stderr: stdout is for what `make` was asked for."""
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """0 when a Java is there in the end, else 1."""
    try:
        java_home()
    except EnvironmentFaultError as fault:
        missing = str(fault)
    else:
        return 0
    as_root = _command_prefix()
    if shutil.which("apt-get") is None or as_root is None:
        say(missing)
        return 1
    if sys.stdin.isatty() and sys.stderr.isatty() and not _agreed():
        say(missing)
        return 1
    return _install(as_root, missing)


def _command_prefix() -> list[str] | None:
    """How to run a command as root: directly, through sudo where somebody can type a password, or not at all."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    return [sudo] if sudo and sys.stdin.isatty() else None


def _agreed() -> bool:
    sys.stderr.write(f"Spark needs Java 17 or later, which is not here. Install {PACKAGES[0]} with apt now? [Y/n] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()  # without even a line end, the terminal was closed
    return answer != "" and answer.strip().lower() in {"", "y", "yes"}


def _install(as_root: list[str], missing: str) -> int:
    say(f"installing {PACKAGES[0]} with apt (about 200 MB, once)")
    _apt(as_root, "update")
    for package in PACKAGES:
        if _apt(as_root, "install", "-y", "--no-install-recommends", package):
            try:
                say(f"Java is installed: {java_home()}")
            except EnvironmentFaultError:
                continue
            return 0
    say(f"apt could not install any of {', '.join(PACKAGES)}; {missing}")
    return 1


def _apt(as_root: list[str], *arguments: str) -> bool:
    """Runs apt-get without its hundred lines of output; whether it succeeded."""
    command = [*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", *arguments]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
