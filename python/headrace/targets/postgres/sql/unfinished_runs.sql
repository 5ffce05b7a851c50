SELECT run_id FROM {schema}.run
WHERE package = $1 AND status NOT IN ('success', 'abandoned')
ORDER BY started_at
