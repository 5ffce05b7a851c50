-- When it began says the server: clocks of clients differ, and `resume` asks which run is the later one.
INSERT INTO {schema}.run
  (run_id, package, package_hash, headrace_version, host, process_id, attempt, status, started_at, of_run)
VALUES ($1, $2, $3, $4, $5, $6::bigint, 1, 'running', pg_catalog.clock_timestamp(), $7)
ON CONFLICT (run_id) DO NOTHING
