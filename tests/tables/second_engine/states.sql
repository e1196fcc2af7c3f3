-- What all tables have in common. Steps are (seq, offset, time, key, state): the state of a key from there on, null for
-- none. Of several at one offset the last one counts, and a step to the same state is none.
CREATE MACRO intervals(steps) AS TABLE
SELECT * EXCLUDE (seq) FROM (
    SELECT
        seq, key, state, "offset" AS valid_from_offset, lead("offset") OVER each_one AS valid_to_offset,
        time AS valid_from, lead(time) OVER each_one AS valid_to
    FROM (
        SELECT * FROM (
            SELECT * FROM query_table(steps) QUALIFY row_number() OVER (PARTITION BY key, "offset" ORDER BY seq DESC) = 1
        )
        QUALIFY state IS DISTINCT FROM lag(state) OVER (PARTITION BY key ORDER BY seq)
    )
    WINDOW each_one AS (PARTITION BY key ORDER BY seq)
)
WHERE state IS NOT NULL;

-- Whether a state is so at an offset; null: it has not ended.
CREATE MACRO is_so(moment, since, until) AS (since <= moment AND (moment < until) IS NOT FALSE);

-- What each metadata delta changes: the states before and after it, null for none. What is undone within one is no change.
CREATE MACRO changes(states) AS TABLE
WITH placed AS (
    SELECT states.key, states.state, since."offset" AS since, until."offset" AS until
    FROM query_table(states) AS states
    ASOF JOIN deltas AS since ON since."offset" >= states.valid_from_offset
    ASOF LEFT JOIN deltas AS until ON until."offset" >= states.valid_to_offset
),
seen AS (SELECT * FROM placed WHERE since IS DISTINCT FROM until)
SELECT
    coalesce(was.until, now.since) AS "offset", coalesce(was.key, now.key) AS key, was.state AS before, now.state AS after
FROM (SELECT * FROM seen WHERE until IS NOT NULL) AS was
FULL JOIN seen AS now ON now.key = was.key AND now.since = was.until
WHERE was.state IS DISTINCT FROM now.state;

-- The order of ids is Java's: their halves are numbers with a sign.
CREATE MACRO signed(digits) AS translate(digits[1], '0123456789ABCDEF', '89ABCDEF01234567') || digits[2:];
CREATE MACRO in_order(ids) AS [pair.id FOR pair IN list_sort([
    {'digits': signed(hex(from_base64(translate(id, '-_', '+/') || '=='))[1:16])
        || signed(hex(from_base64(translate(id, '-_', '+/') || '=='))[17:]), 'id': id}
    FOR id IN ids])];

CREATE MACRO protocol(number) AS
    coalesce(['PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL'][number + 1], number::VARCHAR);
CREATE MACRO listeners_of(end_points) AS list_sort([
    {'name': e.name, 'host': e.host, 'port': e.port, 'protocol': e.security_protocol} FOR e IN end_points]);
CREATE MACRO listener_texts(listeners) AS
    [e.name || '://' || e.host || ':' || e.port || '/' || protocol(e.protocol) FOR e IN listeners];
CREATE MACRO levels_of(features) AS list_sort([
    {'name': f.name, 'least': f.min_supported_version, 'most': f.max_supported_version} FOR f IN features]);
CREATE MACRO level_texts(levels) AS [f.name || '=' || f.least || '-' || f.most FOR f IN levels];
