-- A FeatureLevelRecord sets the level of a feature; 0 removes it. kraft.version is in control records, not here.
CREATE TABLE feature_steps AS
SELECT
    seq, "offset", time, f.name AS key, CASE WHEN f.feature_level <> 0 THEN {'level': f.feature_level} END AS state
FROM (SELECT seq, "offset", time, feature_level_record AS f FROM effective WHERE feature_level_record IS NOT NULL)
WHERE f.name <> 'kraft.version';

CREATE TABLE feature_states AS FROM intervals('feature_steps');

CREATE TABLE feature_history AS
SELECT key AS feature, unnest(state), valid_from_offset, valid_to_offset, valid_from, valid_to FROM feature_states;
