UPDATE {schema}.run SET status = 'lost', finished_at = pg_catalog.clock_timestamp() WHERE run_id = $1 AND status = 'running'
