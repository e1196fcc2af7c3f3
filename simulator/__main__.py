"""Runs histories of the whole cluster: `python -m simulator SEED [SEED …]`.

`--hours 2` makes each two hours long, `--logs` shows what the nodes log, `--json` prints one line a history and nothing
else, `--planted NAME` breaks the production code first, see `planted.py`. The process exits with 1 after a history that
breaks an invariant.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from itertools import chain

from simulator import ordered_maps


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m simulator")
    parser.add_argument("seeds", nargs="+", type=_seeds, metavar="SEED", help="a number, or FIRST-LAST")
    parser.add_argument("--hours", type=float, default=1.0, help="the simulated hours of each history")
    parser.add_argument("--logs", action="store_true", help="show what the nodes log")
    parser.add_argument("--json", action="store_true", help="print one line a history and nothing else")
    parser.add_argument("--planted", metavar="NAME", help="break the production code first; see planted.py")
    parser.add_argument("--until-failure", action="store_true", help="go on up to the first history that fails")
    asked = parser.parse_args()
    ordered_maps.install()

    from simulator.cluster import VirtualCluster
    from simulator.planted import PLANTED, plant

    if asked.planted is not None and asked.planted not in PLANTED:
        parser.error(f"there is no planted fault {asked.planted!r}: give one of {', '.join(PLANTED)}")

    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # little is garbage in cycles, and looking for it takes a tenth of the time

    failed = 0
    for seed in chain.from_iterable(asked.seeds):
        cluster = VirtualCluster(seed, verbose=not asked.json, logs=asked.logs)
        with plant(asked.planted):
            try:
                outcome = cluster.run(asked.hours)
            except AssertionError as fault:
                failed = 1
                print(json.dumps({"seed": seed, "failure": str(fault)}) if asked.json else fault, flush=True)
                if asked.until_failure:
                    break
                continue
        print(json.dumps(outcome.as_json()) if asked.json else outcome, flush=True)
    return failed


def _seeds(named: str) -> range:
    """The seeds of `5` or `5-9`, at least one."""
    first, _, last = named.partition("-")
    if first.isdecimal() and (last or first).isdecimal() and (seeds := range(int(first), int(last or first) + 1)):
        return seeds
    raise argparse.ArgumentTypeError(f"{named!r} is neither a number nor FIRST-LAST")


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets of texts have another order otherwise
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "simulator", *sys.argv[1:]])
    sys.exit(main())
