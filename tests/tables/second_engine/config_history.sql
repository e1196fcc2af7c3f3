-- A ConfigRecord sets one config, or with no value removes it; the configs of a topic go with it.
-- Secrets are (redacted) in records/ already. Configs that Kafka 4.4 does not know are no part of the state: `configs` has
-- those that it does; brokers may have others.
CREATE TABLE config_steps AS
SELECT
    seq, "offset", time, {'resource_type': c.resource_type, 'resource_name': c.resource_name, 'config': c.name} AS key,
    CASE WHEN c.value IS NOT NULL THEN {'value': c.value} END AS state
FROM (SELECT seq, "offset", time, config_record AS c FROM effective WHERE config_record IS NOT NULL)
WHERE c.resource_type = 4 OR EXISTS (FROM configs WHERE configs.resource_type = c.resource_type AND configs.name = c.name)
UNION ALL
SELECT DISTINCT
    topics.to_seq, topics.valid_to_offset, topics.valid_to,
    {'resource_type': 2, 'resource_name': topics.topic, 'config': was.config_record.name}, NULL
FROM topic_lives AS topics
JOIN effective AS was
    ON was.config_record.resource_type = 2 AND was.config_record.resource_name = topics.topic AND was.seq < topics.to_seq;

CREATE TABLE config_states AS FROM intervals('config_steps');

CREATE MACRO resource_type_name(number) AS
    CASE number WHEN 2 THEN 'TOPIC' WHEN 4 THEN 'BROKER' WHEN 16 THEN 'CLIENT_METRICS' WHEN 32 THEN 'GROUP' END;

CREATE TABLE config_history AS
SELECT * REPLACE (resource_type_name(resource_type) AS resource_type)
FROM (
    SELECT unnest(key), unnest(state), valid_from_offset, valid_to_offset, valid_from, valid_to FROM config_states
);
