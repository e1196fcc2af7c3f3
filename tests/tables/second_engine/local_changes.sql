-- What each metadata delta asks of each broker, as Kafka's TopicsDelta.localChanges has it: to delete a replica, to lead or
-- follow in a new partition epoch, or to put a replica elsewhere.
-- A directory is assigned to each replica of a new partition, and of a known one where a record of the delta names
-- directories or the replica has another place in the list; to a broker that is new among its replicas none is.
CREATE TABLE partition_changes AS
SELECT changed.*, topics.topic, written."offset" IS NOT NULL AS written
FROM changes('partition_states') AS changed
JOIN topic_lives AS topics ON topics.topic_id = changed.key.topic_id
LEFT JOIN (
    SELECT DISTINCT deltas."offset", {'topic_id': topic_id, 'partition': partition} AS key
    FROM partition_records AS records ASOF JOIN deltas ON deltas."offset" >= records."offset"
    WHERE records.directories IS NOT NULL
) AS written ON written."offset" = changed."offset" AND written.key = changed.key;

CREATE TABLE local_changes AS
WITH of_brokers AS (
    SELECT
        *, list_position(before.replicas, broker) AS place_before, list_position(after.replicas, broker) AS place,
        list_distinct(before.directories || after.directories) = ['AAAAAAAAAAAAAAAAAAAAAA'] AS both_migrating,
        (before.partition_epoch = after.partition_epoch) IS NOT TRUE AS is_other_epoch
    FROM (
        SELECT *, unnest(list_distinct(coalesce(before.replicas, []) || coalesce(after.replicas, []))) AS broker
        FROM partition_changes
    )
),
assigned AS (
    SELECT
        *,
        CASE WHEN before IS NULL OR (place_before IS NOT NULL AND NOT both_migrating AND (written OR place_before <> place))
            THEN after.directories[place] END AS directory
    FROM of_brokers
)
SELECT
    assigned."offset", deltas.epoch, deltas.time AS timestamp, broker,
    CASE
        WHEN place IS NULL THEN 'delete'
        WHEN NOT is_other_epoch THEN 'directory'
        WHEN after.leader <> broker THEN 'follower'
        WHEN before.leader_epoch = after.leader_epoch THEN 'leader'
        ELSE 'leader_elected'
    END AS change,
    topic, key.topic_id, key.partition,
    CASE WHEN place IS NOT NULL THEN after.leader END AS leader,
    CASE WHEN place IS NOT NULL THEN after.leader_epoch END AS leader_epoch,
    CASE WHEN place IS NOT NULL THEN after.partition_epoch END AS partition_epoch,
    CASE WHEN place IS NOT NULL THEN after.replicas END AS replicas,
    CASE WHEN place IS NOT NULL THEN after.isr END AS isr,
    directory
FROM assigned JOIN deltas USING ("offset")
WHERE place IS NULL OR is_other_epoch OR directory IS NOT NULL;
