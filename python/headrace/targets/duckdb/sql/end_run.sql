UPDATE target.headrace.run SET status = $status, finished_at = $now, error = $error WHERE run_id = $run_id
