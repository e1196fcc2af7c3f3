-- A VotersRecord names all voters of the quorum, with the directories of their logs and where they are reached.
CREATE TABLE voter_steps AS
WITH named AS (
    SELECT seq, "offset", batch_time AS time, kraft_voters.voters AS voters FROM marked WHERE kraft_voters IS NOT NULL
),
everyone AS (SELECT DISTINCT voter.voter_id FROM (SELECT unnest(voters) AS voter FROM named))
SELECT seq, "offset", time, voter_id AS key,
    [{
        'directory_id': v.voter_directory_id,
        'endpoints': [{'name': e.name, 'host': e.host, 'port': e.port} FOR e IN v.endpoints],
        'min_kraft_version': v.k_raft_version_feature.min_supported_version,
        'max_kraft_version': v.k_raft_version_feature.max_supported_version
    } FOR v IN voters IF v.voter_id = voter_id][1] AS state
FROM named CROSS JOIN everyone;

CREATE TABLE voter_states AS FROM intervals('voter_steps');

CREATE TABLE voter_history AS
SELECT * REPLACE ([e.name || '://' || e.host || ':' || e.port FOR e IN endpoints] AS endpoints)
FROM (SELECT key AS voter, unnest(state), valid_from_offset, valid_to_offset, valid_from, valid_to FROM voter_states);
