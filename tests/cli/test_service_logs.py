"""The log of a service on stderr, where that can't be written."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.running import ROOT


@pytest.mark.parametrize("as_json", [True, False])
def test_a_disk_that_is_full_and_a_collector_that_has_gone_cost_lines_and_nothing_else(as_json: bool) -> None:
    program = (
        "import os\n"
        "from kraftlake.cli.output.logs import log_as_service\n"
        "from kraftlake.runtime.log import get_logger\n"
        f"log_as_service(as_json={as_json}, debug=False, colours=False)\n"
        "log, stderr = get_logger('test'), os.dup(2)\n"
        "reader, writer = os.pipe()\n"
        "os.close(reader)\n"
        "for place in (os.open('/dev/full', os.O_WRONLY), writer, stderr):\n"
        "    os.dup2(place, 2)\n"
        "    log.info('logged', place=place)\n"
        "print('goes on')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "goes on\n")
    assert "logged" in done.stderr.splitlines()[-1]
