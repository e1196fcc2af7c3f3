-- A ClientQuotaRecord sets one quota of an entity, or removes it. An entity has a name, or null for the default, of each
-- of some types; of a type that is there twice, the last name counts.
CREATE TABLE quota_steps AS
SELECT
    seq, "offset", time,
    {
        'entity': list_sort([
            {'type': kind, 'name': list_filter(q.entity, lambda e: e.entity_type = kind)[-1].entity_name}
            FOR kind IN list_distinct([e.entity_type FOR e IN q.entity])]),
        'quota': q.key
    } AS key,
    CASE WHEN NOT q.remove THEN {'value': q.value} END AS state
FROM (SELECT seq, "offset", time, client_quota_record AS q FROM effective WHERE client_quota_record IS NOT NULL);

CREATE TABLE quota_states AS FROM intervals('quota_steps');

CREATE MACRO name_in(entity, kind) AS (
    [coalesce(nullif(e.name, ''), '<default>') FOR e IN entity IF e.type = kind][1]
);

CREATE TABLE quota_history AS
SELECT
    '{' || array_to_string([to_json(e.type) || ':' || coalesce(to_json(e.name), 'null') FOR e IN key.entity], ',') || '}'
        AS entity,
    name_in(key.entity, 'user') AS user, name_in(key.entity, 'client-id') AS client_id, name_in(key.entity, 'ip') AS ip,
    key.quota, state.value, valid_from_offset, valid_to_offset, valid_from, valid_to
FROM quota_states;
