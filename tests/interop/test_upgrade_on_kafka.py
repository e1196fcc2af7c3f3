"""Running controllers of two releases refuse the upgrades that the check of their log refuses, for the same node."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import kraftlake
from kraftlake.diagnosis.upgrade.upgrade_check import UpgradeCheck
from tests.interop.kafka_tools import run_tool
from tests.kafka_node import KafkaNode, started_nodes

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: two nodes, three starts"),
]
FEATURES = "org.apache.kafka.tools.FeatureCommand"


def check(node: KafkaNode, folder: Path, feature: str, level: int) -> UpgradeCheck:
    """What a copy of the node's log says, which is what its controller says to a dry run."""
    copied = folder / "copied"
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(node.metadata_directory, copied)
    target = {feature.replace(".", "_"): level}
    found = kraftlake.open(copied).upgrade_check(**target)  # type: ignore[arg-type]
    said = run_tool(
        FEATURES, "--bootstrap-server", node.bootstrap, "upgrade", "--feature", f"{feature}={level}", "--dry-run"
    )
    assert (said.code == 0) == found.allowed, (feature, level, said)
    if not found.allowed:
        kind, id_ = found.obstacles[0].things[0].split()
        assert f"{kind} {id_} only supports" in (said.out + said.err).lower(), (said, found.obstacles[0])
    return found


def test_a_cluster_of_two_releases(tmp_path: Path) -> None:
    roles = {1: "broker,controller", 2: "broker"}
    with started_nodes(tmp_path, roles, release="3.9.1") as nodes:
        node = nodes[1]
        assert not check(node, tmp_path, "metadata.version", 33).allowed
        assert kraftlake.open(node.metadata_directory).upgrade_check(release="4.4").allowed
        node.kill()
        node.release = "4.4.0"
        node.launch()
        node.await_ready()
        for level in (22, 33, 34):
            assert not check(node, tmp_path, "metadata.version", level).allowed
        assert check(node, tmp_path, "metadata.version", 21).allowed
        assert check(node, tmp_path, "kraft.version", 1).allowed
