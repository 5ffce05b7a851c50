SELECT DISTINCT run_id, "table"
FROM target.headrace.commit JOIN target.headrace.slice USING (run_id, task, slice)
WHERE list_contains($run_ids::VARCHAR[], run_id)
ORDER BY run_id, "table"
