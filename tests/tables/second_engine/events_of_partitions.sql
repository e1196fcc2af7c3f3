-- What metadata deltas change of partitions that are there before and after. Of an ISR and an ELR the order is nothing.
CREATE MACRO minus(members, rest) AS [x FOR x IN members IF NOT list_contains(rest, x)];
CREATE MACRO same(members, rest) AS list_has_all(members, rest) AND list_has_all(rest, members);
CREATE MACRO listed(members) AS '[' || array_to_string(members, ', ') || ']';
CREATE MACRO in_words(members) AS
    if(len(members) < 2, array_to_string(members, ''), array_to_string(members[:-2], ', ') || ' and ' || members[-1]);
CREATE MACRO side(state) AS {
    'replicas': state.replicas, 'moves': [state.adding_replicas, state.removing_replicas],
    'stay': minus(state.replicas, state.adding_replicas), 'target': minus(state.replicas, state.removing_replicas),
    'is_moving': len(state.adding_replicas || state.removing_replicas) > 0
};
CREATE MACRO event(kind, field, was, now, words) AS
    {'kind': kind, 'field': field, 'before': was::VARCHAR, 'after': now::VARCHAR, 'words': words};

CREATE MACRO leader_event(was, now) AS CASE
    WHEN was = now THEN NULL
    WHEN now = -1 THEN event('leader_lost', 'leader', was, NULL, 'has no leader any more, it was ' || was)
    WHEN was = -1 THEN event('leader_elected', 'leader', NULL, now, 'is led by ' || now || ', it had no leader')
    ELSE event('leader_moved', 'leader', was, now, 'is led by ' || now || ' instead of ' || was)
END;
CREATE MACRO recovery_event(was, now) AS CASE
    WHEN was = now THEN NULL
    WHEN now = 1 THEN event('recovery_state_changed', 'leader_recovery_state', 'RECOVERED', 'RECOVERING',
        'was given a leader that may lack records')
    ELSE event('recovery_state_changed', 'leader_recovery_state', 'RECOVERING', 'RECOVERED',
        'is done with recovering from an unclean election')
END;
CREATE MACRO isr_event(was, now, gone, come) AS CASE
    WHEN gone = [] AND come = [] THEN NULL
    WHEN come = [] THEN event('isr_shrank', 'isr', listed(was), listed(now),
        'has ' || in_words(gone) || ' no longer in sync: ' || listed(was) || ' → ' || listed(now))
    WHEN gone = [] THEN event('isr_expanded', 'isr', listed(was), listed(now),
        'has ' || in_words(come) || ' in sync as well: ' || listed(was) || ' → ' || listed(now))
    ELSE event('isr_changed', 'isr', listed(was), listed(now),
        'has ' || in_words(come) || ' in sync and no longer ' || in_words(gone) || ': ' || listed(was) || ' → ' || listed(now))
END;
CREATE MACRO elr_event(was, now) AS CASE WHEN NOT same(was, now) THEN
    event('elr_changed', 'elr', listed(was), listed(now),
        'has other replicas eligible to lead: ' || listed(was) || ' → ' || listed(now))
END;
-- A reassignment that ends has been cancelled where the replicas are those from before it, and were to be others.
CREATE MACRO replicas_event(was, now) AS CASE
    WHEN now.is_moving AND NOT was.is_moving THEN event('reassignment_started', 'replicas', listed(was.replicas),
        listed(now.target), 'is being reassigned: ' || listed(was.replicas) || ' → ' || listed(now.target))
    WHEN now.is_moving AND was.moves <> now.moves THEN event('reassignment_changed', 'replicas', listed(was.target),
        listed(now.target), 'is being reassigned elsewhere: ' || listed(now.target) || ' instead of ' || listed(was.target))
    WHEN was.is_moving AND NOT now.is_moving AND same(now.replicas, was.stay) AND NOT same(was.stay, was.target)
    THEN event('reassignment_cancelled', 'replicas', listed(was.target), listed(now.replicas),
        'is no longer reassigned and stays with ' || listed(now.replicas))
    WHEN was.is_moving AND NOT now.is_moving THEN event('reassignment_finished', 'replicas', listed(was.stay),
        listed(now.replicas), 'has been reassigned to ' || listed(now.replicas))
    WHEN NOT now.is_moving AND was.replicas <> now.replicas THEN event('replicas_changed', 'replicas',
        listed(was.replicas), listed(now.replicas),
        'has other replicas: ' || listed(was.replicas) || ' → ' || listed(now.replicas))
END;

CREATE TABLE events_of_partitions AS
SELECT
    "offset", event.kind, topic || '-' || partition AS subject, topic, topic_id, partition, NULL::INT AS broker,
    event.field, event.before, event.after, topic || '-' || partition || ' ' || event.words AS sentence
FROM (
    SELECT "offset", topic, key.topic_id AS topic_id, key.partition AS partition, unnest([
        leader_event(before.leader, after.leader),
        recovery_event(before.leader_recovery_state, after.leader_recovery_state),
        isr_event(before.isr, after.isr, minus(before.isr, after.isr), minus(after.isr, before.isr)),
        elr_event(before.elr, after.elr),
        replicas_event(side(before), side(after))
    ]) AS event
    FROM partition_changes WHERE before IS NOT NULL AND after IS NOT NULL
)
WHERE event IS NOT NULL;
