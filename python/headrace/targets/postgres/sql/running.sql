SELECT run_id FROM {schema}.run WHERE status = 'running' AND run_id <> $1 ORDER BY run_id
