-- Behind the same fence as the units of a load: see commit_slices.sql.
WITH fence AS (
  SELECT run_id FROM {schema}.run
  WHERE run_id = $1 AND attempt = $3::int AND status = 'running'
  FOR SHARE
)
INSERT INTO {schema}.task (run_id, task, committed_at)
SELECT fence.run_id, $2, pg_catalog.clock_timestamp() FROM fence
