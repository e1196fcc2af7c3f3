-- The directories that a broker's process has registered since it started: one that it has no more is offline. Those of
-- the process before it are forgotten, and all of them with the broker.
CREATE TABLE directory_steps AS
WITH processes AS (
    SELECT *, count(*) FILTER (starts) OVER (PARTITION BY key ORDER BY seq) AS process
    FROM (
        SELECT
            *, state.incarnation_id IS DISTINCT FROM lag(state.incarnation_id) OVER (PARTITION BY key ORDER BY seq)
                AS starts
        FROM (
            SELECT * FROM broker_steps
            QUALIFY row_number() OVER (PARTITION BY key, "offset" ORDER BY seq DESC) = 1
        )
    )
),
known AS (SELECT DISTINCT key, unnest(state.directories) AS directory FROM processes)
SELECT
    seq, "offset", time, {'broker': key, 'directory': directory} AS key,
    CASE WHEN ever THEN {'online': coalesce(online, false), 'cordoned': cordoned} END AS state
FROM (
    SELECT
        seq, "offset", time, key, directory, online,
        bool_or(online) OVER so_far AS ever,
        last_value(CASE WHEN online THEN cordoned END IGNORE NULLS) OVER so_far AS cordoned
    FROM (
        SELECT
            processes.*, directory, list_contains(state.directories, directory) AS online,
            coalesce(list_contains(state.cordoned_directories, directory), false) AS cordoned
        FROM processes JOIN known USING (key)
    )
    WINDOW so_far AS (PARTITION BY key, directory, process ORDER BY seq)
);

CREATE TABLE directory_history AS
SELECT unnest(key), unnest(state), valid_from_offset, valid_to_offset, valid_from, valid_to
FROM intervals('directory_steps');
