"""`make test-long`: the page has what each room did, and a run that was stopped goes on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tests.waiting import PATIENCE, wait_for

ALPHA = """
import os
from pathlib import Path
def test_sound():
    with Path("alpha").open("a") as file:
        file.write(os.environ["KRAFTLAKE_SEED"] + " ")
"""
BETA = """
import time
from pathlib import Path
import pytest

def test_that_waits():
    Path("waits").touch()
    while not Path("go on").exists():
        time.sleep(0.05)
    assert Path("mended").exists()

@pytest.mark.skip
def test_for_another_machine():
    pass
"""
BESIDE = """
def test_beside_the_rooms():
    pass
"""
WORDS = ["-p", "no:xdist", "-p", "no:cacheprovider", "--rootdir=."]
RUN = (
    "import signal, sys; from pathlib import Path; from tools.test_long import main; "
    "signal.signal(signal.SIGINT, signal.default_int_handler); "  # a shell has its jobs in the background ignore it
    f"sys.exit(main(sys.argv[1:], {WORDS}, Path.cwd()))"
)
STOPPED, FAILED = 2, 1


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("KRAFTLAKE_SEED", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name, content in (("alpha/test_a.py", ALPHA), ("beta/deep/test_b.py", BETA), ("test_c.py", BESIDE)):
        place = tmp_path / "tests" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "docs").mkdir()
    return tmp_path


def begin(project: Path, *names: str) -> subprocess.Popen[str]:
    """Start a run in a process group of its own, as a terminal does."""
    command = [sys.executable, "-c", RUN, *names]
    return subprocess.Popen(
        command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def end(part: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code of a run, and what it said."""
    said, _ = part.communicate(timeout=PATIENCE)
    return part.returncode, said


def page(project: Path) -> str:
    return (project / "docs" / "test-long.md").read_text()


def rows(project: Path) -> list[str]:
    return re.findall(r"^\| (\w+ \| \d+ \| \d+ \| \d+) \|", page(project), re.MULTILINE)


def test_a_run_that_is_stopped_goes_on_and_begins_with_the_rooms_that_failed(project: Path) -> None:
    run = begin(project)
    wait_for((project / "waits").exists)
    os.killpg(run.pid, signal.SIGINT)
    code, said = end(run)
    assert code == STOPPED
    assert "beta did not come to its end; `make test-long` goes on with it" in said
    assert rows(project) == ["alpha | 1 | 0 | 0"]
    assert "\nNot run yet: beta, tests.\n\n" in page(project)

    (project / "go on").touch()
    code, said = end(begin(project))
    assert code == FAILED
    assert re.findall(r"^(\w+): `KRAFTLAKE", said, re.MULTILINE) == ["beta", "tests", "alpha"]
    assert rows(project) == ["beta | 0 | 1 | 1", "tests | 1 | 0 | 0", "alpha | 1 | 0 | 0"]
    assert "Not run yet" not in page(project)
    assert f"\n2 tests passed and 1 failed in 0 minutes on {os.cpu_count()} cores. " in page(project)
    assert page(project).count(f"| {(project / 'alpha').read_text().split()[-1]} | unknown |") == 3, "the seed"

    (project / "tests" / "gamma").mkdir()
    (project / "tests" / "gamma" / "test_d.py").write_text(BESIDE)
    (project / "mended").touch()
    code, said = end(begin(project))
    assert code == 0
    assert re.findall(r"^(\w+): `KRAFTLAKE", said, re.MULTILINE) == ["gamma", "beta", "tests", "alpha"]


def test_rooms_that_are_named_run_alone_with_the_seed_that_is_given(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRAFTLAKE_SEED", "7")
    code, said = end(begin(project, "alpha"))
    assert code == 0
    assert "`KRAFTLAKE_SEED=7 make test-long ROOMS=alpha` repeats it" in said
    assert rows(project) == ["alpha | 1 | 0 | 0"]
    assert (project / "alpha").read_text() == "7 "
    code, said = end(begin(project, "alfa"))
    assert (code, said) == (FAILED, "tests/ has no room alfa: it has alpha, beta, tests.\n")


def test_what_was_compared_with_kafka_stays_until_it_is_compared_again(project: Path) -> None:
    counts = {"histories": 2, "records": {"TOPIC_RECORD": 1_000}, "images": 3, "local_changes": 4}
    tally = f"import json, os\nwith open(os.environ['KRAFTLAKE_TALLY'], 'w') as file:\n    json.dump({counts}, file)\n"
    (project / "tests" / "alpha" / "test_a.py").write_text(tally + ALPHA)
    assert end(begin(project, "alpha"))[0] == 0
    compared = page(project).partition("## With Kafka")[2]
    assert "2 random logs of 1,000 records: 3 images" in compared
    assert "| TOPIC_RECORD | 1,000 |\n" in compared
    (project / "tests" / "alpha" / "test_a.py").write_text(ALPHA)
    assert end(begin(project, "tests"))[0] == 0
    assert page(project).endswith(compared)
    assert rows(project) == ["alpha | 1 | 0 | 0", "tests | 1 | 0 | 0"]
