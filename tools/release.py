"""Checks the files of a release and completes them: `make release`, after `make wheels`.

What an index would refuse is found first (twine). Then the wheel for this machine is installed in an environment with
nothing else, where a sample has to give its answer; that environment is what the bill of materials (CycloneDX) lists.
SHA256SUMS comes last, so that a folder with it is complete. Nothing is published.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "samples" / "kafka-4.4" / "log" / "__cluster_metadata-0"
SUMS = "SHA256SUMS"


def main(folder: Path) -> int:
    """Checks and completes the release in `folder`; the exit code is 1 where a check fails."""
    (folder / SUMS).unlink(missing_ok=True)
    packages = sorted((*folder.glob("kraftlake-*.whl"), *folder.glob("kraftlake-*.tar.gz")))
    wheels = [path for path in packages if path.name.endswith(f"_{platform.machine()}.whl")]
    if len(wheels) != 1:
        print(f"{folder} has {len(wheels)} wheels for this machine, not one: run `make wheels`.", file=sys.stderr)
        return 1
    try:
        run(sys.executable, "-m", "twine", "check", "--strict", *packages)
        with tempfile.TemporaryDirectory(prefix="kraftlake-release-") as bare:
            python = bare_environment(Path(bare), wheels[0])
            answer(python, Path(bare))
            bill = wheels[0].name.split("-cp")[0] + ".cdx.json"
            run(
                sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--of", "JSON",
                "-o", folder / bill, python,
            )  # fmt: skip
    except (subprocess.CalledProcessError, ValueError) as fault:
        print(f"the release is not complete: {fault}", file=sys.stderr)
        return 1
    (folder / SUMS).write_text(checksums([*packages, folder / bill]), "utf-8")
    print(f"complete: {', '.join(path.name for path in packages)}, {bill}, {SUMS} in {folder}")
    return 0


def bare_environment(folder: Path, wheel: Path) -> Path:
    """Install the wheel alone, with the versions of constraints.txt, and return that environment's Python."""
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "--constraint", ROOT / "constraints.txt", wheel, cwd=folder)
    return python


def answer(python: Path, folder: Path) -> None:
    """Put the sample in and get an answer out, by the installed command: from files, and from a lake.

    Raises ValueError for a wrong answer, and CalledProcessError where a command fails.
    """
    command = python.with_name("kraftlake")
    image = json.loads(run(command, "image", SAMPLE, "--at", "458", "--topic", "fixed-a", "--json", cwd=folder))
    isr = image["topics"]["fixed-a"]["partitions"]["1"]["isr"]
    if isr != [1, 2]:
        raise ValueError(f"fixed-a-1 has the ISR {isr} at offset 458, not [1, 2]")
    run(command, "import", SAMPLE, folder / "lake", cwd=folder)
    run(command, "verify", folder / "lake", cwd=folder)
    metrics = json.loads(run(command, "metrics", folder / "lake", "--at", "458", "--json", cwd=folder))["metrics"]
    if metrics["OfflinePartitionsCount"] != 7:
        raise ValueError(f"{metrics['OfflinePartitionsCount']} partitions are offline at offset 458, not 7")


def checksums(files: Iterable[Path]) -> str:
    """The lines of a file for `sha256sum --check`."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def run(*words: object, cwd: Path | None = None) -> str:
    """Run a command without this environment's packages, and return its output. Raises CalledProcessError."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=900
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "dist").resolve()))
