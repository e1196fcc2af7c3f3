-- A PartitionRecord is the whole state; a PartitionChangeRecord changes the fields that it sets, and raises the partition
-- epoch, with a leader in it the leader epoch too. A ClearElrRecord empties the ELR and the last known ELR of the
-- partitions of a topic, with an empty name of all topics: that is a change only where there was any.
CREATE TABLE partition_records AS
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
        cleared.seq, cleared."offset", cleared.time, 'clear', topics.topic_id, placed.partition_record.partition_id,
        NULL::INT, NULL::INT, NULL::INT, NULL::INT[], NULL::INT[], []::INT[], []::INT[], NULL::INT[], NULL::INT[],
        NULL::INT, NULL::VARCHAR[]
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
FROM partition_records
WINDOW life AS (PARTITION BY topic_id, partition, life ORDER BY seq);

-- With its topic a partition is gone.
CREATE TABLE partition_steps AS
SELECT
    seq, "offset", time, {'topic_id': topic_id, 'partition': partition} AS key,
    {
        'leader': leader, 'leader_epoch': leader_epoch,
        'partition_epoch':
            first_epoch + count(*) FILTER (counts) OVER (PARTITION BY topic_id, partition, life ORDER BY seq),
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
UNION ALL
SELECT DISTINCT to_seq, valid_to_offset, valid_to, {'topic_id': topic_id, 'partition': partition}, NULL
FROM topic_lives JOIN partition_records USING (topic_id)
WHERE to_seq IS NOT NULL;

CREATE TABLE partition_states AS FROM intervals('partition_steps');

-- The rack is that of the leader's registration: where it changes, a state of the partition is divided.
CREATE TABLE rack_steps AS
SELECT seq, "offset", time, key, state.rack AS state FROM broker_steps;

CREATE TABLE racks AS FROM intervals('rack_steps');

CREATE TABLE partition_history AS
WITH cuts AS (
    SELECT key, valid_from_offset AS since, valid_from_offset AS cut, valid_from AS cut_time FROM partition_states
    UNION
    SELECT p.key, p.valid_from_offset, edge.at, edge.time
    FROM partition_states AS p
    JOIN (
        SELECT key AS broker, valid_from_offset AS at, valid_from AS time FROM racks
        UNION ALL
        SELECT key, valid_to_offset, valid_to FROM racks
    ) AS edge
        ON edge.broker = p.state.leader AND edge.at > p.valid_from_offset AND (edge.at < p.valid_to_offset) IS NOT FALSE
)
SELECT
    topics.topic, unnest(p.key), unnest(p.state), racks.state AS leader_rack,
    cuts.cut AS valid_from_offset,
    coalesce(lead(cuts.cut) OVER each_one, p.valid_to_offset) AS valid_to_offset,
    cuts.cut_time AS valid_from,
    CASE WHEN lead(cuts.cut) OVER each_one IS NULL THEN p.valid_to ELSE lead(cuts.cut_time) OVER each_one END AS valid_to
FROM cuts
JOIN partition_states AS p ON p.key = cuts.key AND p.valid_from_offset = cuts.since
JOIN topic_lives AS topics ON topics.topic_id = p.key.topic_id
LEFT JOIN racks
    ON racks.key = p.state.leader AND racks.valid_from_offset <= cuts.cut
    AND (cuts.cut < racks.valid_to_offset) IS NOT FALSE
WINDOW each_one AS (PARTITION BY p.key, p.valid_from_offset ORDER BY cuts.cut);
