-- All events, and those of the quorum's leaders: a delta that begins an epoch under a known leader is one, but for a batch
-- of no-op records. Loading a snapshot makes no events: nobody knows when what is in it happened.
CREATE TABLE events_of_quorum AS
SELECT
    "offset", 'controller_elected' AS kind, 'controller ' || leader AS subject, NULL AS topic, NULL AS topic_id,
    NULL::INT AS partition, NULL::INT AS broker, 'leader' AS field, NULL AS before, leader::VARCHAR AS after,
    'controller ' || leader || ' leads the quorum in epoch ' || epoch AS sentence
FROM (
    SELECT
        deltas.*, led.leader_change.leader_id AS leader,
        lag(deltas.epoch, 1, -1) OVER (ORDER BY deltas."offset") AS epoch_before
    FROM deltas
    ASOF LEFT JOIN (SELECT batch, leader_change FROM marked WHERE leader_change IS NOT NULL) AS led
        ON deltas."offset" >= led.batch
)
WHERE epoch <> epoch_before AND leader >= 0 AND NOT only_no_ops;

CREATE TABLE events AS
SELECT deltas.epoch, deltas.time AS timestamp, each_one.*
FROM (
    FROM events_of_quorum
    UNION ALL FROM events_of_topics
    UNION ALL FROM events_of_partitions
    UNION ALL FROM events_of_nodes
    UNION ALL FROM events_of_others
) AS each_one
JOIN deltas USING ("offset")
WHERE NOT loaded;
