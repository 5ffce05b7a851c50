SELECT run_id, status FROM target.headrace.run WHERE package = $package ORDER BY started_at DESC LIMIT 1
