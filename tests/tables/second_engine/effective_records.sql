-- The records that take effect, in order, with the offset and time at which they do.
-- `rows` are those of records/, with `seq`, their order; those of a snapshot that the log begins with come first.
-- A record of a metadata transaction (KIP-868) takes effect at the offset of its EndTransactionRecord; those of an
-- aborted or unfinished one never do. A batch has one time, the latest of its records.
CREATE TABLE marked AS
SELECT
    *,
    last_value(mark IGNORE NULLS) OVER (ORDER BY seq) AS mark_before,
    first_value(ended IGNORE NULLS) OVER (ORDER BY seq ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS mark_after
FROM (
    SELECT
        *,
        max(timestamp) OVER of_batch AS batch_time,
        max("offset") OVER of_batch AS batch_end,
        bool_and(type = 'NO_OP_RECORD') OVER of_batch AS only_no_ops,
        CASE WHEN type LIKE '%\_TRANSACTION_RECORD' ESCAPE '\' THEN type END AS mark,
        CASE WHEN type IN ('END_TRANSACTION_RECORD', 'ABORT_TRANSACTION_RECORD')
            THEN {'type': type, 'at': "offset", 'time': max(timestamp) OVER of_batch} END AS ended
    FROM rows
    WINDOW of_batch AS (PARTITION BY batch)
);

CREATE TABLE effective AS
SELECT
    * EXCLUDE ("offset"),
    CASE WHEN mark_before = 'BEGIN_TRANSACTION_RECORD' THEN mark_after.at ELSE "offset" END AS "offset",
    CASE WHEN mark_before = 'BEGIN_TRANSACTION_RECORD' THEN mark_after.time ELSE batch_time END AS time
FROM marked
WHERE NOT control AND mark IS NULL
    AND (mark_before IS DISTINCT FROM 'BEGIN_TRANSACTION_RECORD' OR mark_after.type = 'END_TRANSACTION_RECORD');

-- The metadata deltas by their last offsets: a batch ends one unless a transaction is open, and what its batch has in
-- front of the begin of a transaction is one. A snapshot that the log begins with is the first one, `loaded`.
CREATE TABLE deltas AS
SELECT
    "offset", epoch, batch_time AS time, only_no_ops,
    "offset" = (SELECT max("offset") FROM marked WHERE type = 'SNAPSHOT_HEADER') IS TRUE AS loaded
FROM marked
WHERE "offset" = batch_end AND mark_before IS DISTINCT FROM 'BEGIN_TRANSACTION_RECORD'
UNION
SELECT "offset" - 1, epoch, batch_time, false, false
FROM marked WHERE mark = 'BEGIN_TRANSACTION_RECORD' AND "offset" > batch;
