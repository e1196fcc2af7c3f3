"""What differs between two logs, by the JSON of `kraftlake image` alone.

`python -m tests.diagnosis.drift.independent_comparison LOG…` holds `kraftlake drift` of each pair of logs against it.
"""

from __future__ import annotations

import json
import sys
from itertools import combinations
from typing import Any

from tests.cli.running import run, run_json

INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
Side = dict[str, dict[str, dict[str, Any]]]
"""The entries of a cluster by part and by what identifies them to people."""


def side_of(image: dict[str, Any]) -> Side:
    """A cluster of an image's JSON by meaning: no ids, epochs, leaders, ISRs; only digests of keys."""
    levels = {name: {"level": level} for name, level in image["features"].items()}
    if image["metadataVersion"] is not None:
        levels["metadata.version"] = {"level": image["metadataVersion"]["level"]}
    topics = {}
    for name, topic in image["topics"].items():
        partitions = topic["partitions"].values()
        widths = [len([id_ for id_ in one["replicas"] if id_ not in one["removingReplicas"]]) for one in partitions]
        topics[name] = {"partitions": len(widths)} | ({"replicationFactor": max(widths)} if widths else {})
    return {
        "features": levels,
        "topics": {name: topic for name, topic in topics.items() if name not in INTERNAL},
        "configs": {
            f"{kind}:{name}": values
            for kind, resources in image["configs"].items()
            for name, values in resources.items()
            if not (kind == "TOPIC" and name in INTERNAL) and values
        },
        "clientQuotas": {json.dumps(one["entity"], sort_keys=True): one["quotas"] for one in image["clientQuotas"]},
        "acls": {json.dumps(acl, sort_keys=True): acl for acl in image["acls"].values()},
        "scram": {
            f"{mechanism}:{user}": {
                "iterations": one["iterations"], "keys": one["salt"] + one["storedKey"] + one["serverKey"],
            }
            for mechanism, users in image["scram"].items()
            for user, one in users.items()
        },
    }  # fmt: skip


def differing(one: Side, two: Side) -> list[str]:
    """A line for each entry that differs: its part, whether it was added, removed or changed, and its fields."""
    found = []
    for part, mine in one.items():
        others = two[part]
        for key in {*mine, *others}:
            if key not in mine or key not in others:
                kind, entry = ("added", others[key]) if key not in mine else ("removed", mine[key])
            else:
                names = {name for name in {*mine[key], *others[key]} if mine[key].get(name) != others[key].get(name)}
                kind, entry = "changed", {name: [mine[key].get(name), others[key].get(name)] for name in names}
            if entry:
                found.append(_line(part, kind, entry))
    return sorted(found)


def lines_of(drift: dict[str, Any]) -> list[str]:
    """The same lines of the JSON of `kraftlake drift`."""
    return sorted(
        _line(part, kind, entry)
        for part, kinds in drift.items()
        if part not in ("source", "other", "equal", "notCompared")
        for kind, entries in kinds.items()
        for entry in entries.values()
    )


def _line(part: str, kind: str, entry: dict[str, Any]) -> str:
    shown = {name: value if name != "keys" else "differ" for name, value in entry.items()}
    return f"{part} {kind} {json.dumps(shown, sort_keys=True)}"


def check(logs: list[tuple[str, int | None]]) -> dict[tuple[int, int], int]:
    """The number of differences of each pair of logs, at offsets or at their ends, where both comparisons agree."""
    sides = []
    for path, at in logs:
        sides.append(side_of(run_json("image", path, *([] if at is None else ["--at", at]), "--show-secrets")))
    found = {}
    for (first, one), (second, two) in combinations(enumerate(logs), 2):
        moments = [
            word for name, at in (("--at", one[1]), ("--other-at", two[1])) if at is not None for word in (name, at)
        ]
        expected = differing(sides[first], sides[second])
        words = ("drift", one[0], two[0], *moments, "--show-secrets", "--json")
        drift = json.loads(run(*words, code=3 if expected else 0).stdout)
        assert lines_of(drift) == expected, (one, two)
        assert drift["equal"] == (not expected), (one, two)
        found[first, second] = len(expected)
    return found


if __name__ == "__main__":
    for pair, count in check([(path, None) for path in sys.argv[1:]]).items():
        sys.stdout.write(f"{pair}: {count} differences, the same by both\n")
