UPDATE {schema}.run SET attempt = attempt + 1, status = 'running', finished_at = NULL, error = NULL
WHERE run_id = $1 AND status NOT IN ('success', 'abandoned')
RETURNING attempt
