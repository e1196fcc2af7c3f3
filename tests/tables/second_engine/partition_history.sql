-- A PartitionRecord is the whole state; a PartitionChangeRecord changes the fields that it sets, and raises the partition
-- epoch, with a leader in it the leader epoch too. A ClearElrRecord empties the ELR and the last known ELR of the
-- partitions of a topic, with an empty name of all topics: that is a change only where there was any.
CREATE TABLE partition_steps AS
SELECT *, count(*) FILTER (what = 'whole') OVER (PARTITION BY topic_id, partition ORDER BY seq) AS life
FROM (
    SELECT
        seq, "offset", time, 'whole' AS what, p.topic_id, p.partition_id AS partition, p.leader,
        p.leader_epoch, p.partition_epoch, p.replicas, p.isr,
        coalesce(p.eligible_leader_replicas, []) AS elr, coalesce(p.last_known_elr, []) AS last_known_elr,
        p.adding_replicas, p.removing_replicas, p.leader_recovery_state, p.directories
    FROM (SELECT seq, "offset", time, partition_record AS p FROM effective WHERE partition_record IS NOT NULL)
    UNION ALL
    SELECT
        seq, "offset", time, 'change', c.topic_id, c.partition_id, nullif(c.leader, -2),
        NULL, NULL, c.replicas, c.isr, c.eligible_leader_replicas, c.last_known_elr,
        c.adding_replicas, c.removing_replicas, nullif(c.leader_recovery_state, -1), c.directories
    FROM (SELECT seq, "offset", time, partition_change_record AS c FROM effective WHERE partition_change_record IS NOT NULL)
    UNION ALL
    SELECT DISTINCT
        cleared.seq, cleared."offset", cleared.time, 'clear', topics.topic_id, placed.partition_record.partition_id, NULL::INT,
        NULL::INT, NULL::INT, NULL::INT[], NULL::INT[], []::INT[], []::INT[], NULL::INT[], NULL::INT[], NULL::INT, NULL::VARCHAR[]
    FROM effective AS cleared
    JOIN topic_lives AS topics
        ON cleared.clear_elr_record.topic_name IN ('', topics.topic)
        AND topics.from_seq < cleared.seq AND coalesce(topics.to_seq > cleared.seq, true)
    JOIN effective AS placed ON placed.partition_record.topic_id = topics.topic_id AND placed.seq < cleared.seq
    WHERE cleared.clear_elr_record IS NOT NULL
);

CREATE TABLE filled_partitions AS
SELECT
    seq, "offset", time, what, topic_id, partition, life,
    last_value(leader IGNORE NULLS) OVER life AS leader,
    last_value(leader_epoch IGNORE NULLS) OVER life
        + count(*) FILTER (what = 'change' AND leader IS NOT NULL) OVER life AS leader_epoch,
    last_value(partition_epoch IGNORE NULLS) OVER life AS first_epoch,
    last_value(replicas IGNORE NULLS) OVER life AS replicas,
    last_value(isr IGNORE NULLS) OVER life AS isr,
    last_value(elr IGNORE NULLS) OVER life AS elr,
    last_value(last_known_elr IGNORE NULLS) OVER life AS last_known_elr,
    last_value(adding_replicas IGNORE NULLS) OVER life AS adding_replicas,
    last_value(removing_replicas IGNORE NULLS) OVER life AS removing_replicas,
    last_value(leader_recovery_state IGNORE NULLS) OVER life AS leader_recovery_state,
    last_value(directories IGNORE NULLS) OVER life AS directories
FROM partition_steps
WINDOW life AS (PARTITION BY topic_id, partition, life ORDER BY seq);

CREATE TABLE partition_states AS
SELECT
    seq, "offset", time, topic_id, partition,
    {
        'leader': leader, 'leader_epoch': leader_epoch,
        'partition_epoch': first_epoch + count(*) FILTER (counts) OVER (PARTITION BY topic_id, partition, life ORDER BY seq),
        'replicas': replicas, 'isr': isr, 'elr': elr, 'last_known_elr': last_known_elr,
        'adding_replicas': adding_replicas, 'removing_replicas': removing_replicas,
        'leader_recovery_state': leader_recovery_state,
        'directories': CASE WHEN len(list_distinct(directories || ['AAAAAAAAAAAAAAAAAAAAAA'])) = 1
            THEN ['AAAAAAAAAAAAAAAAAAAAAA' FOR _ IN replicas] ELSE directories END
    } AS state
FROM (
    SELECT *, what = 'change' OR (what = 'clear' AND len(lag(elr || last_known_elr) OVER life) > 0) AS counts
    FROM filled_partitions
    WINDOW life AS (PARTITION BY topic_id, partition, life ORDER BY seq)
)
QUALIFY row_number() OVER (PARTITION BY topic_id, partition, "offset" ORDER BY seq DESC) = 1;

CREATE TABLE partitions_without_racks AS
SELECT
    topics.topic, states.topic_id, states.partition, unnest(states.state),
    states."offset" AS from_offset, states.time AS from_time,
    coalesce(lead(states."offset") OVER each_one, topics.valid_to_offset) AS to_offset,
    CASE WHEN lead(states."offset") OVER each_one IS NULL THEN topics.valid_to ELSE lead(states.time) OVER each_one END
        AS to_time
FROM (
    SELECT * FROM partition_states
    QUALIFY state IS DISTINCT FROM lag(state) OVER (PARTITION BY topic_id, partition ORDER BY seq)
) AS states
JOIN topic_lives AS topics USING (topic_id)
WINDOW each_one AS (PARTITION BY states.topic_id, states.partition ORDER BY states.seq);

-- The rack is that of the leader's registration: where it changes, a state of the partition is divided.
CREATE TABLE racks AS
SELECT broker, rack, min(valid_from_offset) AS from_offset, max(coalesce(valid_to_offset, 1::BIGINT << 62)) AS to_offset,
    arg_min(valid_from, valid_from_offset) AS from_time
FROM (
    SELECT *, count(*) FILTER (fresh) OVER (PARTITION BY broker ORDER BY valid_from_offset) AS run
    FROM (
        SELECT *, rack IS DISTINCT FROM lag(rack) OVER each_one
            OR valid_from_offset IS DISTINCT FROM lag(valid_to_offset) OVER each_one AS fresh
        FROM broker_history
        WINDOW each_one AS (PARTITION BY broker ORDER BY valid_from_offset)
    )
)
WHERE rack IS NOT NULL
GROUP BY broker, rack, run;

CREATE TABLE partition_history AS
WITH cuts AS (
    SELECT topic_id, partition, from_offset, to_offset, from_offset AS cut, from_time AS cut_time
    FROM partitions_without_racks
    UNION
    SELECT p.topic_id, p.partition, p.from_offset, p.to_offset, edge.at, edge.time
    FROM partitions_without_racks AS p
    JOIN (
        SELECT broker, from_offset AS at, from_time AS time FROM racks
        UNION
        SELECT racks.broker, to_offset, states.time FROM racks
        JOIN broker_states AS states ON states.broker = racks.broker AND states."offset" = racks.to_offset
    ) AS edge
        ON edge.broker = p.leader AND edge.at > p.from_offset AND edge.at < coalesce(p.to_offset, 1::BIGINT << 62)
)
SELECT
    p.* EXCLUDE (from_offset, to_offset, from_time, to_time),
    racks.rack AS leader_rack,
    cuts.cut AS valid_from_offset,
    coalesce(lead(cuts.cut) OVER each_one, p.to_offset) AS valid_to_offset,
    cuts.cut_time AS valid_from,
    CASE WHEN lead(cuts.cut) OVER each_one IS NULL THEN p.to_time ELSE lead(cuts.cut_time) OVER each_one END AS valid_to
FROM cuts
JOIN partitions_without_racks AS p USING (topic_id, partition, from_offset)
LEFT JOIN racks ON racks.broker = p.leader AND racks.from_offset <= cuts.cut AND cuts.cut < racks.to_offset
WHERE p.from_offset IS DISTINCT FROM p.to_offset
WINDOW each_one AS (PARTITION BY topic_id, partition, p.from_offset ORDER BY cuts.cut);
