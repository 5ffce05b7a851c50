-- Runs that ended (or, still `running`, died where nobody may say so) in the middle of an append straight into the table: some of its
-- slices are there, not all, and nobody has replaced them since, or made the table once more.
SELECT run.run_id, run.status, slice.task, pg_catalog.count(*) AS slices, pg_catalog.count(done.slice) AS committed
FROM {schema}.slice
JOIN {schema}.unit ON unit.run_id = slice.run_id AND unit.task = slice.task AND unit.staging IS NULL
JOIN {schema}.run ON run.run_id = slice.run_id
LEFT JOIN {schema}.commit AS done
  ON done.run_id = slice.run_id AND done.task = slice.task AND done.slice = slice.slice AND done."partition" = unit."partition"
WHERE slice.slice > 0 AND slice."schema" = $1 AND slice."table" = $2 AND run.run_id <> $3
  AND run.status IN ('lost', 'failed', 'cancelled', 'running')
  AND {is_same}
GROUP BY run.run_id, run.status, slice.task
HAVING pg_catalog.count(done.slice) > 0 AND pg_catalog.count(done.slice) < pg_catalog.count(*)
  AND NOT EXISTS (
    SELECT FROM {schema}.slice AS other JOIN {schema}.commit AS later USING (run_id, task)
    WHERE later.slice = 0 AND later.committed_at > pg_catalog.max(done.committed_at) AND other.target NOT IN ('append', 'reload')
      AND other."schema" = $1 AND other."table" = $2
  )
ORDER BY run.run_id
