-- DuckDB lets one process write a file: whoever holds it now knows that every other run of it is dead.
UPDATE target.headrace.run SET status = 'lost', finished_at = $now WHERE status = 'running' RETURNING run_id
