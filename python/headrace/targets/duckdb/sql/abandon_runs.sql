UPDATE target.headrace.run SET status = 'abandoned' WHERE list_contains($run_ids::VARCHAR[], run_id)
