"""The sample of a cluster with an authorizer, and lines in the form of its log."""

from __future__ import annotations

from pathlib import Path

SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "authorized"
DIRECTORY = SAMPLE / "log" / "__cluster_metadata-0"
LOGS = tuple(str(SAMPLE / f"node-{node}" / "kafka-authorizer.log.gz") for node in (1, 2, 3))
CAROL = "User:CN=Carol\\, Smith \\= ops"


def sentence(
    principal: str = "User:a",
    operation: str = "CREATE",
    resource: str = "Topic:LITERAL:x",
    request: str = "CreateTopics",
    *,
    host: str = "10.0.0.4",
    decision: str = "Allowed",
    rule: str = "SuperUser",
) -> str:
    """A decision in Kafka's words."""
    return (
        f"Principal = {principal} is {decision} operation = {operation} from host = {host} on resource = {resource} "
        f"for request = {request} with resourceRefCount = 1 based on rule {rule}"
    )


def line(clock: str, *words: str, **named: str) -> str:
    """A line of the log that Kafka's own configuration makes, at a time of a day."""
    return f"[2026-11-21 {clock}] DEBUG {sentence(*words, **named)} (kafka.authorizer.logger)"
