-- A RegisterControllerRecord is the whole state of a controller.
CREATE TABLE controller_steps AS
SELECT
    seq, "offset", time, c.controller_id AS key,
    {
        'incarnation_id': c.incarnation_id,
        'zk_migration_ready': c.zk_migration_ready,
        'listeners': listeners_of(c.end_points),
        'features': levels_of(c.features)
    } AS state
FROM (
    SELECT seq, "offset", time, register_controller_record AS c
    FROM effective WHERE register_controller_record IS NOT NULL
)
UNION ALL
SELECT seq, "offset", time, unregister_controller_record.controller_id, NULL
FROM effective WHERE unregister_controller_record IS NOT NULL;

CREATE TABLE controller_states AS FROM intervals('controller_steps');

CREATE TABLE controller_history AS
SELECT * REPLACE (listener_texts(listeners) AS listeners, level_texts(features) AS features)
FROM (
    SELECT key AS controller, unnest(state), valid_from_offset, valid_to_offset, valid_from, valid_to
    FROM controller_states
);
