"""The seed of the random logs of a run of the tests, in the environment of all that it starts."""

from __future__ import annotations

import os
import random


def seed_of_run() -> str:
    """What KRAFTLAKE_SEED says, which is chosen here where it says nothing."""
    os.environ["KRAFTLAKE_SEED"] = seed = os.environ.get("KRAFTLAKE_SEED") or str(
        random.SystemRandom().randrange(2**32)
    )
    return seed
