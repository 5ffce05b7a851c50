UPDATE target.headrace.run SET attempt = attempt + 1, status = 'running', finished_at = NULL, error = NULL
WHERE run_id = $run_id RETURNING attempt
