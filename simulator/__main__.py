"""Runs histories of the whole cluster: `python -m simulator SEED [SEED …]`.

`--hours 2` makes each two hours long, `--dense` has half as many faults again in them, `--logs` shows what the nodes
log, `--json` prints one line a history and nothing else. The process exits with 1 after a history that breaks an
invariant.

`--planted NAME` breaks the production code first, see `planted.py`. Without seeds, histories follow each other up to
one that shows it: first the one that did when it was planted, then those of seeds 1 to 60.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import chain

from simulator import open_classes, ordered_maps


def main() -> int:
    asked, parser = _asked()
    open_classes.install()
    ordered_maps.install()

    from simulator.patching import modules_of_nodes
    from simulator.planted import PLANTED
    from simulator.planted_fault import CAUGHT_WITHIN

    for name in asked.planted:
        if name not in PLANTED:
            parser.error(f"there is no planted fault {name!r}: give some of {', '.join(PLANTED)}")
    if not asked.seeds and not asked.planted:
        parser.error("give a seed, or a planted fault, which has its own")

    modules_of_nodes()  # all that the garbage collector need not look at later
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # little is garbage in cycles, and looking for it takes a tenth of the time

    failed, seeds = False, list(chain.from_iterable(asked.seeds))
    for name in asked.planted or [None]:
        if seeds:
            failed |= any(list(_failures(asked, name, seeds, asked.hours)))
        else:
            fault = PLANTED[name]
            searched = dict.fromkeys((fault.seed, *range(1, CAUGHT_WITHIN + 1)))
            failed |= any(map(fault.is_shown_by, _failures(asked, name, searched, fault.hours)))
    return int(failed)


def _failures(asked: argparse.Namespace, planted: str | None, seeds: Iterable[int], hours: float) -> Iterator[str]:
    """Run histories, perhaps with a planted fault, and yield why each fails, "" where it does not."""
    from simulator.cluster import VirtualCluster
    from simulator.planted import plant

    named = {} if planted is None else {"planted": planted}
    for seed in seeds:
        cluster = VirtualCluster(seed, dense=asked.dense, verbose=not asked.json, logs=asked.logs)
        with plant(planted):
            try:
                outcome, failure = cluster.run(hours), ""
            except AssertionError as fault:
                outcome, failure = None, str(fault)
        if outcome is None:
            print(json.dumps({"seed": seed, **named, "failure": failure}) if asked.json else failure, flush=True)
        else:
            print(json.dumps(outcome.as_json() | named) if asked.json else outcome, flush=True)
        yield failure


def _asked() -> tuple[argparse.Namespace, argparse.ArgumentParser]:
    parser = argparse.ArgumentParser(prog="python -m simulator")
    parser.add_argument("seeds", nargs="*", type=_seeds, metavar="SEED", help="a number, or FIRST-LAST")
    parser.add_argument("--hours", type=float, default=1.0, help="the simulated hours of each history")
    parser.add_argument("--dense", action="store_true", help="half as many faults again")
    parser.add_argument("--logs", action="store_true", help="show what the nodes log")
    parser.add_argument("--json", action="store_true", help="print one line a history and nothing else")
    parser.add_argument(
        "--planted", metavar="NAME", action="append", default=[],
        help="break the production code first, see planted.py; may be given again",
    )  # fmt: skip
    return parser.parse_args(), parser


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
