"""How long a client that has logged in waits while others try to get in: half-open handshakes, wrong passwords.

    python -m benchmarks.siege [--wrong N]

The listener, the client and each of the attackers are processes of their own, on loopback. Printed are the time of an
exchange of a few bytes, p50, p99 and the longest, and the memory of the listener's process.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.server.requests.besieged import Besieged, besieged

HALF_OPEN = 1_000
ATTACKERS = 4
IDLE_SECONDS = 3.0
PATIENCE_SECONDS = 2.0


def print_times(what: str, taken: list[float], town: Besieged) -> None:
    """Print the times since the last call."""
    p50, p99 = (1000 * statistics.quantiles(taken, n=100)[at] for at in (49, 98))
    longest = 1000 * max(taken)
    print(
        f"{what:34} p50 {p50:6.2f} ms, p99 {p99:6.2f} ms, max {longest:6.1f} ms, {town.memory_mb:5.0f} MB", flush=True
    )
    taken.clear()


def attack(port: int, authority: str, count: int, host: str) -> None:
    """Send wrong passwords."""
    town = Besieged(port=port, pid=0, authority=Path(authority) if authority else None)
    print(town.wrong_passwords(count, host))


def besiege(protocol: str, wrong: int) -> None:
    """Measure a listener for a protocol."""
    with tempfile.TemporaryDirectory() as folder, besieged(protocol, Path(folder)) as town, town.pinged() as taken:
        time.sleep(IDLE_SECONDS)
        print_times(f"{protocol}: alone", taken, town)
        half = town.half_open(HALF_OPEN)
        time.sleep(PATIENCE_SECONDS)
        print_times(f"{protocol}: {len(half)} half-open", taken, town)
        begun = time.monotonic()
        command = [sys.executable, "-m", "benchmarks.siege", "--attack", str(town.port), str(town.authority or "")]
        attackers = [
            subprocess.Popen([*command, str(wrong // ATTACKERS), f"127.0.3.{number + 1}"], stdout=subprocess.PIPE)
            for number in range(ATTACKERS)
        ]
        refused = sum(int(one.communicate()[0]) for one in attackers)
        rate = refused / (time.monotonic() - begun)
        print_times(f"{protocol}: {refused} wrong, {rate:.0f} a second", taken, town)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wrong", type=int, default=10_000)
    parser.add_argument("--attack", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack:
        port, authority, count, host = options.attack
        attack(int(port), authority, int(count), host)
        return
    for protocol in ("SASL_PLAINTEXT", "SASL_SSL"):
        besiege(protocol, options.wrong)


if __name__ == "__main__":
    main()
