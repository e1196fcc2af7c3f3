-- A topic lives from its TopicRecord to its RemoveTopicRecord; each creation has another id.
CREATE TABLE topic_lives AS
SELECT
    made.topic_record.name AS topic,
    made.topic_record.topic_id AS topic_id,
    made."offset" AS valid_from_offset,
    gone."offset" AS valid_to_offset,
    made.time AS valid_from,
    gone.time AS valid_to,
    made.seq AS from_seq,
    gone.seq AS to_seq
FROM effective AS made
LEFT JOIN effective AS gone ON gone.remove_topic_record.topic_id = made.topic_record.topic_id
WHERE made.topic_record IS NOT NULL;

-- What is created and removed at one offset was never there.
CREATE TABLE topic_history AS
SELECT topic, topic_id, valid_from_offset, valid_to_offset, valid_from, valid_to
FROM topic_lives WHERE valid_from_offset IS DISTINCT FROM valid_to_offset;

CREATE VIEW topic_states AS
SELECT topic_id AS key, {'topic': topic} AS state, valid_from_offset, valid_to_offset, valid_from, valid_to
FROM topic_history;
