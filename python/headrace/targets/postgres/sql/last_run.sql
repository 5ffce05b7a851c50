SELECT run_id, status FROM {schema}.run WHERE package = $1 ORDER BY started_at DESC LIMIT 1
