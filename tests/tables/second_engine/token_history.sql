-- A DelegationTokenRecord issues a token or renews it, until another time, which records/ does not have.
CREATE TABLE token_steps AS
SELECT seq, "offset", time, delegation_token_record.token_id AS key, {'set_by': seq} AS state
FROM effective WHERE delegation_token_record IS NOT NULL
UNION ALL
SELECT seq, "offset", time, remove_delegation_token_record.token_id, NULL
FROM effective WHERE remove_delegation_token_record IS NOT NULL;

CREATE TABLE token_states AS FROM intervals('token_steps');

CREATE TABLE token_history AS
SELECT key AS token_id, valid_from_offset, valid_to_offset, valid_from, valid_to FROM token_states;
