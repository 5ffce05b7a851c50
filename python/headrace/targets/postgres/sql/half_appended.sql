-- Runs that ended (or, still `running`, died where nobody may say so) in the middle of an append straight into the table: some of its slices are there, not all.
SELECT run.run_id, run.status, slice.task, pg_catalog.count(*) AS slices, pg_catalog.count(done.slice) AS committed
FROM {schema}.slice
JOIN {schema}.run ON run.run_id = slice.run_id
LEFT JOIN {schema}.commit AS done ON done.run_id = slice.run_id AND done.task = slice.task AND done.slice = slice.slice
WHERE slice."schema" = $1 AND slice."table" = $2 AND slice.staging IS NULL AND run.run_id <> $3
  AND run.status IN ('lost', 'failed', 'cancelled', 'running')
GROUP BY run.run_id, run.status, slice.task
HAVING pg_catalog.count(done.slice) > 0 AND pg_catalog.count(done.slice) < pg_catalog.count(*)
ORDER BY run.run_id
