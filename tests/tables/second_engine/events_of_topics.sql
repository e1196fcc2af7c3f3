-- Topics that are there, gone, or have more partitions after a metadata delta.
CREATE MACRO counted(factors) AS len(factors) || ' partition' || if(len(factors) = 1, '', 's')
    || if(len(factors) = 0, '', ', replication factor ' || if(list_min(factors) = list_max(factors),
        list_min(factors)::VARCHAR, list_min(factors) || ' to ' || list_max(factors)));

CREATE TABLE events_of_topics AS
WITH come_or_gone AS (
    SELECT
        "offset", key.topic_id AS topic_id,
        coalesce(list(len(after.replicas)) FILTER (before IS NULL), []) AS come,
        coalesce(list(len(before.replicas)) FILTER (after IS NULL), []) AS gone
    FROM partition_changes GROUP BY ALL
),
of_topics AS (
    SELECT
        "offset", topic_id, coalesce(t.before.topic, t.after.topic) AS topic,
        t.after IS NOT NULL AS made, t.before IS NOT NULL AS removed, coalesce(come, []) AS come, coalesce(gone, []) AS gone
    FROM (SELECT "offset", key AS topic_id, before, after FROM changes('topic_states')) AS t
    LEFT JOIN come_or_gone USING ("offset", topic_id)
),
more AS (
    SELECT
        added."offset", topic_id, topics.state.topic AS topic, len(come) AS come,
        (
            SELECT count(*) FROM partition_states AS p
            WHERE p.key.topic_id = added.topic_id AND is_so(added."offset", p.valid_from_offset, p.valid_to_offset)
        ) AS total
    FROM come_or_gone AS added
    ANTI JOIN of_topics USING ("offset", topic_id)
    JOIN topic_states AS topics ON topics.key = added.topic_id
    WHERE len(come) > 0
)
SELECT
    "offset", if(made, 'topic_created', 'topic_deleted') AS kind, 'topic ' || topic AS subject, topic, topic_id,
    NULL::INT AS partition, NULL::INT AS broker, NULL AS field,
    CASE WHEN removed THEN counted(gone) END AS before, CASE WHEN made THEN counted(come) END AS after,
    'topic ' || topic || if(made, ' is created with ' || counted(come), ' with ' || counted(gone) || ' is gone') AS sentence
FROM of_topics
UNION ALL
SELECT
    "offset", 'partitions_added', 'topic ' || topic, topic, topic_id, NULL, NULL, 'partitions',
    (total - come)::VARCHAR, total::VARCHAR,
    'topic ' || topic || ' has ' || total || ' partitions, ' || come || ' more than before'
FROM more;
