-- A row if the task was planned.
SELECT 1 FROM {schema}.slice WHERE run_id = $1 AND task = $2 LIMIT 1
