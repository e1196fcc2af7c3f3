-- A rule of access lives from its AccessControlEntryRecord to its RemoveAccessControlEntryRecord; it never changes.
CREATE TABLE acl_history AS
WITH steps AS (
    SELECT seq, "offset", time, access_control_entry_record.id AS acl_id, access_control_entry_record AS acl
    FROM effective WHERE access_control_entry_record IS NOT NULL
    UNION ALL
    SELECT seq, "offset", time, remove_access_control_entry_record.id, NULL
    FROM effective WHERE remove_access_control_entry_record IS NOT NULL
),
changes AS (
    SELECT * FROM (
        SELECT * FROM steps QUALIFY row_number() OVER (PARTITION BY acl_id, "offset" ORDER BY seq DESC) = 1
    )
    QUALIFY acl IS DISTINCT FROM lag(acl) OVER (PARTITION BY acl_id ORDER BY seq)
)
SELECT
    acl_id,
    coalesce(['UNKNOWN', 'ANY', 'TOPIC', 'GROUP', 'CLUSTER', 'TRANSACTIONAL_ID', 'DELEGATION_TOKEN', 'USER'][acl.resource_type + 1], 'UNKNOWN') AS resource_type,
    acl.resource_name,
    coalesce(['UNKNOWN', 'ANY', 'MATCH', 'LITERAL', 'PREFIXED'][acl.pattern_type + 1], 'UNKNOWN') AS pattern_type,
    acl.principal,
    acl.host,
    coalesce(['UNKNOWN', 'ANY', 'ALL', 'READ', 'WRITE', 'CREATE', 'DELETE', 'ALTER', 'DESCRIBE', 'CLUSTER_ACTION', 'DESCRIBE_CONFIGS',
     'ALTER_CONFIGS', 'IDEMPOTENT_WRITE', 'CREATE_TOKENS', 'DESCRIBE_TOKENS', 'TWO_PHASE_COMMIT'][acl.operation + 1], 'UNKNOWN') AS operation,
    coalesce(['UNKNOWN', 'ANY', 'DENY', 'ALLOW'][acl.permission_type + 1], 'UNKNOWN') AS permission_type,
    valid_from_offset, valid_to_offset, valid_from, valid_to
FROM (
    SELECT
        *, "offset" AS valid_from_offset, time AS valid_from,
        lead("offset") OVER each_one AS valid_to_offset, lead(time) OVER each_one AS valid_to
    FROM changes
    WINDOW each_one AS (PARTITION BY acl_id ORDER BY seq)
)
WHERE acl IS NOT NULL;
