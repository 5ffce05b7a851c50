-- The first run that has made the table, or its rows, anew since the task was loaded into it. Ledgers made before have no schemas.
SELECT other.run_id
FROM target.headrace.slice AS other
JOIN target.headrace.commit AS done ON done.run_id = other.run_id AND done.task = other.task AND done.slice = 0
WHERE other.target <> 'append' AND lower(other."table") = lower($table)
  AND lower(coalesce(other."schema", $schema)) = lower($schema)
  AND (other.run_id, other.task) <> ($run_id, $task)
  AND done.committed_at > (
    SELECT own.committed_at FROM target.headrace.commit AS own
    WHERE own.run_id = $run_id AND own.task = $task AND own.slice = 0
  )
ORDER BY done.committed_at LIMIT 1
