UPDATE {schema}.run SET status = $2, finished_at = pg_catalog.clock_timestamp(), error = $3
WHERE run_id = $1 AND attempt = $4::int AND status = 'running'
