-- A LeaderChangeMessage begins an epoch; kraft.version is that of the newest KRaftVersionRecord, 0 without one. Control
-- records take effect where they are, whatever transaction is open. Of a snapshot nobody knows who leads.
CREATE TABLE quorum_steps AS
SELECT
    seq, "offset", time, 'quorum' AS key,
    CASE WHEN led IS NOT NULL THEN {
        'epoch': led.epoch, 'leader': led.leader, 'kraft_version': kraft_version, 'voters': led.voters,
        'granting_voters': led.granting_voters
    } END AS state
FROM (
    SELECT
        seq, "offset", batch_time AS time,
        coalesce(last_value(kraft_version.k_raft_version IGNORE NULLS) OVER (ORDER BY seq), 0) AS kraft_version,
        last_value(CASE WHEN leader_change IS NOT NULL THEN {
            'epoch': epoch,
            'leader': leader_change.leader_id,
            'voters': list_sort([v.voter_id FOR v IN leader_change.voters]),
            'granting_voters': list_sort([v.voter_id FOR v IN leader_change.granting_voters])
        } END IGNORE NULLS) OVER (ORDER BY seq) AS led
    FROM marked WHERE control
);

CREATE TABLE quorum_history AS
SELECT unnest(state), valid_from_offset, valid_to_offset, valid_from, valid_to FROM intervals('quorum_steps');
