-- Commit rows of slices of which not all units have committed: partition, slice, rows.
SELECT done."partition", slice, done.rows_loaded
FROM {schema}.commit AS done JOIN {schema}.slice AS planned USING (run_id, task, slice)
WHERE run_id = $1 AND task = $2
  AND planned.units > (SELECT pg_catalog.count(*) FROM {schema}.commit AS every
                       WHERE every.run_id = $1 AND every.task = $2 AND every.slice = done.slice)
ORDER BY done."partition", slice
