"""Runs histories of the whole cluster: `python -m tests.simulation.virtual SEED [SEED …]`, with what happens.

With --logs, what the nodes log too.
"""

from __future__ import annotations

import sys

from tests.simulation.virtual.cluster import VirtualCluster

for seed in [argument for argument in sys.argv[1:] if argument.isdecimal()]:
    print(VirtualCluster(int(seed), verbose=True, logs="--logs" in sys.argv).run())
