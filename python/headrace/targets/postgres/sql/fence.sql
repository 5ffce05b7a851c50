-- The fence of a session whose rows the ledger does not have one by one: a row as long as this attempt of the run goes
-- on. The lock lasts until the commit, so that whoever takes the run over waits for it.
SELECT true FROM {schema}.run WHERE run_id = $1 AND attempt = $2::int AND status = 'running' FOR SHARE
