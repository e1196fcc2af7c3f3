-- A rule of access lives from its AccessControlEntryRecord to its RemoveAccessControlEntryRecord; another one with its id
-- takes its place.
CREATE TABLE acl_steps AS
SELECT
    seq, "offset", time, acl.id AS key,
    {
        'resource_type': coalesce(['UNKNOWN', 'ANY', 'TOPIC', 'GROUP', 'CLUSTER', 'TRANSACTIONAL_ID', 'DELEGATION_TOKEN',
            'USER'][acl.resource_type + 1], 'UNKNOWN'),
        'resource_name': acl.resource_name,
        'pattern_type': coalesce(['UNKNOWN', 'ANY', 'MATCH', 'LITERAL', 'PREFIXED'][acl.pattern_type + 1], 'UNKNOWN'),
        'principal': acl.principal,
        'host': acl.host,
        'operation': coalesce(['UNKNOWN', 'ANY', 'ALL', 'READ', 'WRITE', 'CREATE', 'DELETE', 'ALTER', 'DESCRIBE',
            'CLUSTER_ACTION', 'DESCRIBE_CONFIGS', 'ALTER_CONFIGS', 'IDEMPOTENT_WRITE', 'CREATE_TOKENS', 'DESCRIBE_TOKENS',
            'TWO_PHASE_COMMIT'][acl.operation + 1], 'UNKNOWN'),
        'permission_type': coalesce(['UNKNOWN', 'ANY', 'DENY', 'ALLOW'][acl.permission_type + 1], 'UNKNOWN')
    } AS state
FROM (
    SELECT seq, "offset", time, access_control_entry_record AS acl
    FROM effective WHERE access_control_entry_record IS NOT NULL
)
UNION ALL
SELECT seq, "offset", time, remove_access_control_entry_record.id, NULL
FROM effective WHERE remove_access_control_entry_record IS NOT NULL;

CREATE TABLE acl_states AS FROM intervals('acl_steps');

CREATE TABLE acl_history AS
SELECT key AS acl_id, unnest(state), valid_from_offset, valid_to_offset, valid_from, valid_to FROM acl_states;
