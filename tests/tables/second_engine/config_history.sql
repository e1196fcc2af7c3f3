-- A ConfigRecord sets one config, or with no value removes it; the configs of a topic go with it.
-- Secrets are (redacted) in records/ already.
CREATE TABLE config_history AS
WITH steps AS (
    SELECT seq, "offset", time, c.resource_type, c.resource_name, c.name AS config, c.value
    FROM (SELECT seq, "offset", time, config_record AS c FROM effective WHERE config_record IS NOT NULL)
    UNION ALL
    SELECT DISTINCT topics.to_seq, topics.valid_to_offset, topics.valid_to, 2, topics.topic, was.config_record.name, NULL
    FROM topic_lives AS topics
    JOIN effective AS was
        ON was.config_record.resource_type = 2 AND was.config_record.resource_name = topics.topic AND was.seq < topics.to_seq
),
newest AS (
    SELECT * FROM steps
    QUALIFY row_number() OVER (PARTITION BY resource_type, resource_name, config, "offset" ORDER BY seq DESC) = 1
),
changes AS (
    SELECT * FROM newest
    QUALIFY value IS DISTINCT FROM lag(value) OVER (PARTITION BY resource_type, resource_name, config ORDER BY seq)
)
SELECT
    CASE resource_type WHEN 2 THEN 'TOPIC' WHEN 4 THEN 'BROKER' WHEN 16 THEN 'CLIENT_METRICS' WHEN 32 THEN 'GROUP' END
        AS resource_type,
    resource_name, config, value, valid_from_offset, valid_to_offset, valid_from, valid_to
FROM (
    SELECT
        *, "offset" AS valid_from_offset, time AS valid_from,
        lead("offset") OVER each_one AS valid_to_offset, lead(time) OVER each_one AS valid_to
    FROM changes
    WINDOW each_one AS (PARTITION BY resource_type, resource_name, config ORDER BY seq)
)
WHERE value IS NOT NULL;
