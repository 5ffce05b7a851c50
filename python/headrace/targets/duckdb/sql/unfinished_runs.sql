SELECT run_id FROM target.headrace.run
WHERE package = $package AND status NOT IN ('success', 'abandoned')
ORDER BY started_at
