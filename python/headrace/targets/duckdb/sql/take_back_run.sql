UPDATE target.headrace.run SET status = 'running', finished_at = NULL, error = NULL
WHERE run_id = $run_id RETURNING run_id
