-- What metadata deltas change of brokers, controllers and the voters of the quorum. Sides are texts, or JSON with its keys
-- in order.
CREATE MACRO texts_json(members) AS '[' || array_to_string([to_json(x)::VARCHAR FOR x IN members], ', ') || ']';
CREATE MACRO listeners_json(listeners) AS '{' || array_to_string([
    to_json(e.name) || ': {"host": ' || to_json(e.host) || ', "port": ' || e.port
        || coalesce(', "securityProtocol": ' || e.protocol, '') || '}'
    FOR e IN listeners], ', ') || '}';
CREATE MACRO levels_json(levels) AS '{' || array_to_string([
    to_json(f.name) || ': [' || f.least || ', ' || f.most || ']' FOR f IN levels], ', ') || '}';
CREATE MACRO change_words(field, before, after) AS CASE
    WHEN before IS NULL THEN field || ' set to ' || after
    WHEN after IS NULL THEN field || ' no longer set, it was ' || before
    ELSE field || ' changed: ' || before || ' → ' || after
END;
-- The fields of a side in the order of its JSON.
CREATE MACRO broker_fields(state) AS CASE WHEN state IS NOT NULL THEN MAP {
    'epoch': state.broker_epoch::VARCHAR, 'incarnationId': state.incarnation_id,
    'listeners': listeners_json(state.listeners), 'features': levels_json(state.features),
    'rack': state.rack, 'fenced': state.fenced::VARCHAR, 'inControlledShutdown': state.in_controlled_shutdown::VARCHAR,
    'directories': texts_json(state.directories), 'cordonedDirectories': texts_json(state.cordoned_directories)
} END;
CREATE MACRO controller_fields(state) AS CASE WHEN state IS NOT NULL THEN MAP {
    'incarnationId': state.incarnation_id, 'zkMigrationReady': state.zk_migration_ready::VARCHAR,
    'listeners': listeners_json(state.listeners), 'features': levels_json(state.features)
} END;
CREATE MACRO voter_fields(state) AS CASE WHEN state IS NOT NULL THEN MAP {
    'directoryId': state.directory_id,
    'endpoints': listeners_json(list_sort([
        {'name': e.name, 'host': e.host, 'port': e.port, 'protocol': NULL::INT} FOR e IN state.endpoints])),
    'kraftVersions': '[' || state.min_kraft_version || ', ' || state.max_kraft_version || ']'
} END;
CREATE MACRO whole_json(fields) AS '{' || array_to_string([
    '"' || name || '": '
        || coalesce(if(name IN ('incarnationId', 'rack', 'directoryId'), to_json(fields[name]), fields[name]), 'null')
    FOR name IN list_sort(map_keys(fields))], ', ') || '}';

CREATE TABLE node_changes AS
SELECT "offset", 'broker' AS node, key, broker_fields(before) AS before, broker_fields(after) AS after
FROM changes('broker_states')
UNION ALL
SELECT "offset", 'controller', key, controller_fields(before), controller_fields(after) FROM changes('controller_states')
UNION ALL
SELECT "offset", 'voter', key, voter_fields(before), voter_fields(after) FROM changes('voter_states');

CREATE TABLE events_of_nodes AS
WITH whole AS (
    SELECT
        *, NULL AS field, node || if(node = 'voter', if(before IS NULL, '_added', '_removed'),
            if(before IS NULL, '_registered', '_unregistered')) AS kind,
        CASE
            WHEN node = 'voter' THEN
                'controller ' || key || if(before IS NULL, ' is a voter', ' is no longer a voter') || ' of the quorum'
            WHEN before IS NOT NULL THEN node || ' ' || key || ' is no longer registered'
            WHEN node = 'controller' THEN node || ' ' || key || ' is registered'
            ELSE node || ' ' || key || ' is registered' || coalesce(' in rack ' || nullif(after['rack'], ''), '') || ', '
                || if(after['fenced'] = 'true', 'fenced', 'unfenced')
        END AS sentence
    FROM node_changes WHERE before IS NULL OR after IS NULL
),
fields AS (
    SELECT *, before[field] AS was, after[field] AS now
    FROM (SELECT *, unnest(map_keys(before)) AS field FROM node_changes WHERE before IS NOT NULL AND after IS NOT NULL)
    WHERE before[field] IS DISTINCT FROM after[field]
        -- Another epoch says no more than that the broker has started anew; none and no directory are both none.
        AND NOT (field = 'epoch' AND before['incarnationId'] <> after['incarnationId'])
        AND NOT (
            field = 'cordonedDirectories' AND coalesce(before[field], '[]') = '[]' AND coalesce(after[field], '[]') = '[]'
        )
),
changed AS (
    SELECT
        *,
        CASE
            WHEN field = 'incarnationId' THEN node || '_registered'
            WHEN field = 'fenced' THEN if(now = 'true', 'broker_fenced', 'broker_unfenced')
            WHEN field = 'inControlledShutdown' AND now = 'true' THEN 'broker_in_controlled_shutdown'
            ELSE node || '_changed'
        END AS kind,
        node || ' ' || key || CASE
            WHEN field = 'incarnationId' THEN ' has started anew'
            WHEN field = 'fenced' THEN if(now = 'true', ' is fenced', ' is unfenced')
            WHEN field = 'inControlledShutdown' THEN
                if(now = 'true', ' is in controlled shutdown', ' is no longer in controlled shutdown')
            ELSE ' has ' || change_words(field, was, now)
        END AS sentence
    FROM fields
)
SELECT
    "offset", kind, node || ' ' || key AS subject, NULL AS topic, NULL AS topic_id, NULL::INT AS partition,
    CASE WHEN node = 'broker' THEN key END AS broker, field, was AS before, now AS after, sentence
FROM (
    SELECT "offset", node, key, kind, field, was, now, sentence FROM changed
    UNION ALL
    SELECT "offset", node, key, kind, field, whole_json(before), whole_json(after), sentence FROM whole
);
