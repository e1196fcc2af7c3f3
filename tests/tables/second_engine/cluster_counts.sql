-- Kafka's controller counts after each metadata delta that changes one: each state counts from the delta of its first
-- offset to the one of its last.
CREATE TABLE cluster_counts AS
WITH weights AS (
    SELECT valid_from_offset, valid_to_offset,
        (NOT fenced)::INT AS active, fenced::INT AS fenced, in_controlled_shutdown::INT AS stopping,
        0 AS topics, 0 AS partitions, 0 AS offline, 0 AS imbalanced, 0 AS under_replicated, 0 AS reassigning, 0 AS recovering
    FROM broker_history
    UNION ALL
    SELECT valid_from_offset, valid_to_offset, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0
    FROM topic_history
    UNION ALL
    SELECT
        valid_from_offset, valid_to_offset, 0, 0, 0, 0, 1,
        (leader = -1)::INT, (leader <> replicas[1])::INT, (len(isr) < len(replicas))::INT,
        (len(adding_replicas) + len(removing_replicas) > 0)::INT, (leader_recovery_state = 1)::INT
    FROM partition_history
),
steps AS (
    SELECT valid_from_offset AS at, 1 AS sign, weights.* FROM weights
    UNION ALL
    SELECT valid_to_offset, -1, weights.* FROM weights WHERE valid_to_offset IS NOT NULL
),
by_delta AS (
    SELECT
        deltas."offset",
        sum(sign * active) AS active, sum(sign * fenced) AS fenced, sum(sign * stopping) AS stopping,
        sum(sign * topics) AS topics, sum(sign * partitions) AS partitions, sum(sign * offline) AS offline,
        sum(sign * imbalanced) AS imbalanced, sum(sign * under_replicated) AS under_replicated,
        sum(sign * reassigning) AS reassigning, sum(sign * recovering) AS recovering
    FROM steps ASOF JOIN deltas ON deltas."offset" >= steps.at
    GROUP BY deltas."offset"
)
SELECT
    "offset",
    sum(active) OVER so_far AS active_broker_count,
    sum(fenced) OVER so_far AS fenced_broker_count,
    sum(stopping) OVER so_far AS controlled_shutdown_broker_count,
    sum(topics) OVER so_far AS global_topic_count,
    sum(partitions) OVER so_far AS global_partition_count,
    sum(offline) OVER so_far AS offline_partitions_count,
    sum(imbalanced) OVER so_far AS preferred_replica_imbalance_count,
    sum(under_replicated) OVER so_far AS under_replicated_partitions,
    sum(reassigning) OVER so_far AS reassigning_partitions,
    sum(recovering) OVER so_far AS recovering_partitions
FROM by_delta
WINDOW so_far AS (ORDER BY "offset");
