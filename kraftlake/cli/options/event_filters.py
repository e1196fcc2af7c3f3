"""The options that select events, the same wherever events are shown."""

from __future__ import annotations

from kraftlake.cli.options.parameters import KINDS
from kraftlake.cli.options.shared import (
    brokers_option,
    hosted_option,
    list_option,
    partitions_option,
    principals_option,
    together,
    topic_ids_option,
    topics_option,
)

event_filters = together(
    topics_option("Only of this topic"),
    topic_ids_option("Only of the topic that has, or had, this id, without its configs"),
    partitions_option("Only of this partition"),
    brokers_option("Only of this broker itself"),
    hosted_option,
    principals_option("Only about this principal: its ACLs, and of a user its credentials and quotas"),
    list_option(
        "--kind",
        "kinds",
        type=KINDS,
        help="Only of this kind, such as leader_lost, or a word for some: offline, unclean, isr; * and ? match. "
        "Repeatable, or A,B.",
    ),
)
"""Adds the options `topics`, `topic_ids`, `partitions`, `brokers`, `hosted`, `principals` and `kinds` to a command.

By name they are the fields of `EventSelection`.
"""
