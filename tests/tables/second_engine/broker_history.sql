-- A RegisterBrokerRecord is the whole state of a broker; the records that follow it change single fields.
-- Of a BrokerRegistrationChangeRecord 0, no directories and null mean unchanged.
CREATE TABLE broker_records AS
SELECT
    *,
    count(*) FILTER (whole) OVER (PARTITION BY broker ORDER BY seq) AS life
FROM (
    SELECT
        seq, "offset", time, true AS whole, false AS gone,
        register_broker_record.broker_id AS broker,
        register_broker_record AS known,
        register_broker_record.fenced AS fenced,
        register_broker_record.in_controlled_shutdown AS in_controlled_shutdown,
        register_broker_record.log_dirs AS directories,
        register_broker_record.cordoned_log_dirs AS cordoned_directories
    FROM effective WHERE register_broker_record IS NOT NULL
    UNION ALL
    SELECT
        seq, "offset", time, false, false,
        broker_registration_change_record.broker_id, NULL,
        CASE broker_registration_change_record.fenced WHEN 1 THEN true WHEN -1 THEN false END,
        CASE broker_registration_change_record.in_controlled_shutdown WHEN 1 THEN true END,
        CASE WHEN len(broker_registration_change_record.log_dirs) > 0
            THEN broker_registration_change_record.log_dirs END,
        broker_registration_change_record.cordoned_log_dirs
    FROM effective WHERE broker_registration_change_record IS NOT NULL
    UNION ALL
    SELECT seq, "offset", time, false, false, fence_broker_record.id, NULL, true, NULL, NULL, NULL
    FROM effective WHERE fence_broker_record IS NOT NULL
    UNION ALL
    SELECT seq, "offset", time, false, false, unfence_broker_record.id, NULL, false, NULL, NULL, NULL
    FROM effective WHERE unfence_broker_record IS NOT NULL
    UNION ALL
    SELECT seq, "offset", time, true, true, unregister_broker_record.broker_id, NULL, NULL, NULL, NULL, NULL
    FROM effective WHERE unregister_broker_record IS NOT NULL
);

CREATE TABLE broker_steps AS
SELECT
    seq, "offset", time, broker AS key,
    CASE WHEN NOT gone THEN {
        'broker_epoch': known.broker_epoch,
        'incarnation_id': known.incarnation_id,
        'fenced': fenced,
        'in_controlled_shutdown': in_controlled_shutdown,
        'rack': known.rack,
        'listeners': listeners_of(known.end_points),
        'features': levels_of(known.features),
        'directories': in_order(directories),
        'cordoned_directories': cordoned_directories
    } END AS state
FROM (
    SELECT
        seq, "offset", time, broker, gone,
        last_value(known IGNORE NULLS) OVER life AS known,
        last_value(fenced IGNORE NULLS) OVER life AS fenced,
        last_value(in_controlled_shutdown IGNORE NULLS) OVER life AS in_controlled_shutdown,
        last_value(directories IGNORE NULLS) OVER life AS directories,
        last_value(cordoned_directories IGNORE NULLS) OVER life AS cordoned_directories
    FROM broker_records
    WINDOW life AS (PARTITION BY broker, life ORDER BY seq)
);

CREATE TABLE broker_states AS FROM intervals('broker_steps');

CREATE TABLE broker_history AS
SELECT * REPLACE (listener_texts(listeners) AS listeners, level_texts(features) AS features)
FROM (SELECT key AS broker, unnest(state), valid_from_offset, valid_to_offset, valid_from, valid_to FROM broker_states);
