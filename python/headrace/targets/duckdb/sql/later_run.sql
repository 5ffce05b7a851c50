SELECT run_id FROM target.headrace.run
WHERE package = $package AND of_run IS NULL AND started_at > (SELECT started_at FROM target.headrace.run WHERE run_id = $run_id)
ORDER BY started_at DESC LIMIT 1
