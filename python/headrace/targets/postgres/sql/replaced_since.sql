-- The first run that has made the table, or some of its rows, anew since a task was loaded into it.
SELECT other.run_id
FROM {schema}.slice AS other
JOIN {schema}.commit AS done ON done.run_id = other.run_id AND done.task = other.task AND done.slice = 0
WHERE other.target <> 'append' AND other."schema" = $3 AND other."table" = $4 AND (other.run_id, other.task) <> ($1, $2)
  AND done.committed_at > (
    SELECT own.committed_at FROM {schema}.commit AS own WHERE own.run_id = $1 AND own.task = $2 AND own.slice = 0
  )
ORDER BY done.committed_at LIMIT 1
