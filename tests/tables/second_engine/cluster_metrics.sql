-- The counts after each metadata delta that changes one or has an election, and after the first one of the log.
-- An election is unclean where a record makes the leader recover, and from the ELR where the leader that a record names
-- was in it. Those of topics that are gone behind the delta don't count.
CREATE TABLE elections AS
SELECT
    deltas."offset",
    count(*) FILTER (recovery = 1) AS unclean_leader_elections,
    count(*) FILTER (list_contains(elr_before, leader)) AS elr_leader_elections
FROM (
    SELECT
        filled."offset", filled.topic_id, written.leader, written.leader_recovery_state AS recovery,
        lag(filled.elr) OVER (PARTITION BY filled.topic_id, filled.partition ORDER BY filled.seq) AS elr_before
    FROM filled_partitions AS filled JOIN partition_records AS written USING (seq, topic_id, partition)
) AS records
ASOF JOIN deltas ON deltas."offset" >= records."offset"
JOIN topic_lives AS topics USING (topic_id)
WHERE elr_before IS NOT NULL AND (topics.valid_to_offset <= deltas."offset") IS NOT TRUE
GROUP BY deltas."offset";

CREATE TABLE moments AS
SELECT DISTINCT deltas."offset" FROM (
    SELECT unnest([valid_from_offset, valid_to_offset]) AS at FROM topic_states
    UNION SELECT unnest([valid_from_offset, valid_to_offset]) FROM partition_states
    UNION SELECT unnest([valid_from_offset, valid_to_offset]) FROM broker_states
    UNION SELECT unnest([valid_from_offset, valid_to_offset]) FROM config_states WHERE key.config = 'min.insync.replicas'
) AS edges ASOF JOIN deltas ON deltas."offset" >= edges.at
UNION SELECT min("offset") FROM deltas
UNION SELECT "offset" FROM elections;

-- min.insync.replicas of a topic, else of all brokers, else 1; a value that is no integer is none.
CREATE TABLE least_in_sync AS
SELECT key, trim(state.value)::INT AS least, valid_from_offset, valid_to_offset
FROM config_states
WHERE key.config = 'min.insync.replicas' AND regexp_full_match(trim(state.value), '[+-]?[0-9]{1,9}');

CREATE TABLE partitions_then AS
SELECT
    m."offset", p.state AS p, brokers.state.fenced AS led_by_fenced,
    coalesce(of_topic.least, of_all.least, 1) AS min_isr
FROM moments AS m
JOIN partition_states AS p ON is_so(m."offset", p.valid_from_offset, p.valid_to_offset)
JOIN topic_states AS topics ON topics.key = p.key.topic_id
LEFT JOIN broker_states AS brokers
    ON brokers.key = p.state.leader AND is_so(m."offset", brokers.valid_from_offset, brokers.valid_to_offset)
LEFT JOIN least_in_sync AS of_topic
    ON of_topic.key.resource_type = 2 AND of_topic.key.resource_name = topics.state.topic
    AND is_so(m."offset", of_topic.valid_from_offset, of_topic.valid_to_offset)
LEFT JOIN least_in_sync AS of_all
    ON of_all.key.resource_type = 4 AND of_all.key.resource_name = ''
    AND is_so(m."offset", of_all.valid_from_offset, of_all.valid_to_offset);

-- A directory is offline where a replica is in it, and the broker is registered without it. A broker that names none is
-- older than the assignment of directories; of the reserved ids, LOST alone is no place.
CREATE TABLE offline_directories AS
SELECT "offset", count(DISTINCT replica) AS offline_directories
FROM (
    SELECT "offset", unnest(list_zip(p.replicas, p.directories)) AS replica FROM partitions_then
) AS placed
JOIN broker_states AS brokers
    ON brokers.key = replica[1] AND is_so("offset", brokers.valid_from_offset, brokers.valid_to_offset)
WHERE replica[2] = 'AAAAAAAAAAAAAAAAAAAAAg'
    OR (replica[2] NOT IN ('AAAAAAAAAAAAAAAAAAAAAA', 'AAAAAAAAAAAAAAAAAAAAAQ')
        AND len(brokers.state.directories) > 0 AND NOT list_contains(brokers.state.directories, replica[2]))
GROUP BY "offset";

CREATE TABLE counts AS
SELECT "offset", coalesce(COLUMNS(* EXCLUDE ("offset")), 0)
FROM moments
LEFT JOIN (
    SELECT
        m."offset", count(*) FILTER (NOT state.fenced) AS active_broker_count,
        count(*) FILTER (state.fenced) AS fenced_broker_count,
        count(*) FILTER (state.in_controlled_shutdown) AS controlled_shutdown_broker_count
    FROM moments AS m JOIN broker_states ON is_so(m."offset", valid_from_offset, valid_to_offset)
    GROUP BY m."offset"
) USING ("offset")
LEFT JOIN (
    SELECT m."offset", count(*) AS global_topic_count
    FROM moments AS m JOIN topic_states ON is_so(m."offset", valid_from_offset, valid_to_offset)
    GROUP BY m."offset"
) USING ("offset")
LEFT JOIN (
    SELECT
        "offset", count(*) AS global_partition_count,
        count(*) FILTER (p.leader = -1) AS offline_partitions_count,
        count(*) FILTER (p.leader <> p.replicas[1]) AS preferred_replica_imbalance_count,
        count(*) FILTER (len(p.isr) < least(min_isr, len(p.replicas))) AS under_min_isr_partitions,
        count(*) FILTER (len(p.isr) < len(p.replicas)) AS under_replicated_partitions,
        count(*) FILTER (led_by_fenced) AS led_by_fenced_partitions,
        count(*) FILTER (len(p.adding_replicas) + len(p.removing_replicas) > 0) AS reassigning_partitions,
        count(*) FILTER (p.leader_recovery_state = 1) AS recovering_partitions
    FROM partitions_then
    GROUP BY "offset"
) USING ("offset")
LEFT JOIN offline_directories USING ("offset")
LEFT JOIN elections USING ("offset");

CREATE TABLE cluster_metrics AS
SELECT deltas.epoch, deltas.time AS timestamp, counted.* EXCLUDE (before, now)
FROM (
    SELECT *, lag(now) OVER (ORDER BY "offset") AS before
    FROM (
        SELECT counts.*, row(*COLUMNS(counts.* EXCLUDE ("offset", unclean_leader_elections, elr_leader_elections))) AS now
        FROM counts
    )
) AS counted
JOIN deltas USING ("offset")
WHERE unclean_leader_elections + elr_leader_elections > 0
    OR if(before IS NULL, NOT only_no_ops OR global_topic_count > 0, now IS DISTINCT FROM before);
