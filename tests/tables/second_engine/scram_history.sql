-- A UserScramCredentialRecord sets a credential of a user; each has another salt, which records/ does not have.
CREATE TABLE scram_steps AS
SELECT
    seq, "offset", time, {'user': c.name, 'mechanism': if(c.mechanism IN (1, 2), c.mechanism, 0)} AS key,
    {'iterations': c.iterations, 'set_by': seq} AS state
FROM (
    SELECT seq, "offset", time, user_scram_credential_record AS c
    FROM effective WHERE user_scram_credential_record IS NOT NULL
)
UNION ALL
SELECT
    seq, "offset", time, {'user': c.name, 'mechanism': if(c.mechanism IN (1, 2), c.mechanism, 0)}, NULL
FROM (
    SELECT seq, "offset", time, remove_user_scram_credential_record AS c
    FROM effective WHERE remove_user_scram_credential_record IS NOT NULL
);

CREATE TABLE scram_states AS FROM intervals('scram_steps');

CREATE MACRO mechanism_name(number) AS ['UNKNOWN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'][number + 1];

CREATE TABLE scram_history AS
SELECT
    key.user, mechanism_name(key.mechanism) AS mechanism, state.iterations,
    valid_from_offset, valid_to_offset, valid_from, valid_to
FROM scram_states;
