-- A FeatureLevelRecord sets the level of a feature; 0 removes it. kraft.version is in control records, not here.
CREATE TABLE feature_history AS
WITH newest AS (
    SELECT seq, "offset", time, f.name AS feature, nullif(f.feature_level, 0) AS level
    FROM (SELECT seq, "offset", time, feature_level_record AS f FROM effective WHERE feature_level_record IS NOT NULL)
    WHERE f.name <> 'kraft.version'
    QUALIFY row_number() OVER (PARTITION BY f.name, "offset" ORDER BY seq DESC) = 1
),
changes AS (
    SELECT * FROM newest
    QUALIFY level IS DISTINCT FROM lag(level) OVER (PARTITION BY feature ORDER BY seq)
)
SELECT feature, level, valid_from_offset, valid_to_offset, valid_from, valid_to
FROM (
    SELECT
        *, "offset" AS valid_from_offset, time AS valid_from,
        lead("offset") OVER each_one AS valid_to_offset, lead(time) OVER each_one AS valid_to
    FROM changes
    WINDOW each_one AS (PARTITION BY feature ORDER BY seq)
)
WHERE level IS NOT NULL;
