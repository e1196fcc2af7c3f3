-- What metadata deltas change of configs, quotas, rules of access, features, credentials and tokens.
CREATE MACRO acl_text(acl) AS lower(acl.permission_type) || ' ' || acl.principal || ' ' || lower(acl.operation) || ' on '
    || lower(acl.resource_type) || ' ' || acl.resource_name
    || if(acl.pattern_type = 'LITERAL', '', ' (' || lower(acl.pattern_type) || ')') || ' from ' || acl.host;
CREATE MACRO config_subject(key) AS if(key.resource_name = '',
    'all ' || lower(resource_type_name(key.resource_type)) || 's',
    lower(resource_type_name(key.resource_type)) || ' ' || key.resource_name);
CREATE MACRO level_words(before, after) AS CASE
    WHEN after IS NULL THEN ' is no longer finalized, it was at level ' || before
    ELSE ' is at level ' || after || coalesce(' instead of ' || before, '')
END;

-- kraft.version is in control records; without any it is 0.
CREATE TABLE kraft_version_steps AS
SELECT
    seq, "offset", batch_time AS time, 'kraft.version' AS key,
    CASE WHEN kraft_version.k_raft_version > 0 THEN {'level': kraft_version.k_raft_version} END AS state
FROM marked WHERE kraft_version IS NOT NULL;
CREATE TABLE kraft_version_states AS FROM intervals('kraft_version_steps');

CREATE TABLE events_of_others AS
SELECT
    "offset", 'config_changed' AS kind, config_subject(key) AS subject,
    CASE WHEN key.resource_type = 2 THEN key.resource_name END AS topic, NULL AS topic_id, NULL::INT AS partition,
    CASE WHEN key.resource_type = 4 THEN TRY_CAST(key.resource_name AS INT) END AS broker, key.config AS field,
    before.value AS before, after.value AS after,
    config_subject(key) || if(key.resource_name = '', ' have ', ' has ')
        || change_words(key.config, before.value, after.value) AS sentence
FROM changes('config_states')
UNION ALL
SELECT
    "offset", 'quota_changed', subject, NULL, NULL, NULL, NULL, key.quota, before.value::VARCHAR, after.value::VARCHAR,
    'quota of ' || subject || ': ' || change_words(key.quota, before.value::VARCHAR, after.value::VARCHAR)
FROM (
    SELECT *, array_to_string([e.type || ' ' || coalesce(e.name, '(default)') FOR e IN key.entity], ', ') AS subject
    FROM changes('quota_states')
)
UNION ALL
SELECT
    "offset", 'acl_removed', before.principal, NULL, NULL, NULL, NULL, key, acl_text(before), NULL,
    'ACL removed: ' || acl_text(before)
FROM changes('acl_states') WHERE before IS NOT NULL
UNION ALL
SELECT
    "offset", 'acl_added', after.principal, NULL, NULL, NULL, NULL, key, NULL, acl_text(after),
    'ACL added: ' || acl_text(after)
FROM changes('acl_states') WHERE after IS NOT NULL
UNION ALL
SELECT
    "offset", 'feature_changed', 'feature ' || key, NULL, NULL, NULL, NULL, key,
    before.level::VARCHAR, after.level::VARCHAR, key || level_words(before.level, after.level)
FROM (
    FROM changes('feature_states')
    UNION ALL
    SELECT * REPLACE (coalesce(before, {'level': 0}) AS before, coalesce(after, {'level': 0}) AS after)
    FROM changes('kraft_version_states')
)
UNION ALL
SELECT
    "offset", 'scram_changed', 'user ' || key.user, NULL, NULL, NULL, NULL, mechanism_name(key.mechanism),
    if(before.iterations IS DISTINCT FROM after.iterations, before.iterations::VARCHAR, NULL),
    if(before.iterations IS DISTINCT FROM after.iterations, after.iterations::VARCHAR, NULL),
    'credential ' || mechanism_name(key.mechanism) || ' of user ' || key.user
        || CASE WHEN before IS NULL THEN ' was set' WHEN after IS NULL THEN ' was removed' ELSE ' was changed' END
FROM changes('scram_states')
UNION ALL
SELECT
    "offset", 'delegation_token_changed', 'delegation token ' || key, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    'delegation token ' || key || CASE
        WHEN before IS NULL THEN ' was issued'
        WHEN after IS NULL THEN ' was taken away'
        ELSE ' was renewed or changed'
    END
FROM changes('token_states');
