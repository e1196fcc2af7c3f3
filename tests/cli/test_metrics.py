"""`kraftlake metrics` against what it counts."""

from __future__ import annotations

from tests.cli.running import DIRECTORY, run, run_json


def test_metrics_are_those_of_the_image_at_the_same_offset() -> None:
    image = run_json("image", DIRECTORY, "--at-offset", "4592")
    answer = run_json("metrics", DIRECTORY, "--at-offset", "4592")
    partitions = [p for topic in image["topics"].values() for p in topic["partitions"].values()]
    assert (answer["offset"], answer["epoch"]) == (image["offset"], image["epoch"])
    assert answer["metrics"]["GlobalTopicCount"] == len(image["topics"])
    assert answer["metrics"]["GlobalPartitionCount"] == len(partitions)
    assert answer["health"]["underReplicatedPartitions"] == sum(len(p["isr"]) < len(p["replicas"]) for p in partitions)
    assert answer["metrics"]["ActiveBrokerCount"] == sum(not b["fenced"] for b in image["brokers"].values())
    for id_, counts in answer["brokers"].items():
        assert counts["led"] == sum(p["leader"] == int(id_) for p in partitions)
        assert counts["outOfIsr"] == sum(int(id_) in p["replicas"] and int(id_) not in p["isr"] for p in partitions)


def test_a_brokers_partitions_are_named_as_many_as_were_counted() -> None:
    counted = run_json("metrics", DIRECTORY)["brokers"]
    assert counted
    for id_, counts in counted.items():
        named = run_json("metrics", DIRECTORY, "--broker", id_)
        assert {kind: len(named[kind]) for kind in counts} == counts
        hosted = run_json("image", DIRECTORY, "--broker", id_)["topics"]
        names = {f"{name}-{p}" for name, topic in hosted.items() for p in topic["partitions"]}
        assert {*named["led"], *named["followed"]} == names


def test_metrics_are_drawn_under_kafkas_names() -> None:
    drawn = run("metrics", DIRECTORY).stdout
    assert "PreferredReplicaImbalanceCount" in drawn
    assert "under min ISR" in drawn
    assert "followed" in run("metrics", DIRECTORY, "--broker", "1").stdout
