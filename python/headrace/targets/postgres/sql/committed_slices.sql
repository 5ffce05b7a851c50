-- The complete slices of a task, each with its account: all its units have committed. 0 is the switch, which is no slice.
SELECT slice, pg_catalog.sum(done.rows_loaded), pg_catalog.sum(done.rows_rejected), pg_catalog.sum(done.rows_skipped),
       pg_catalog.sum(done.values_ignored), pg_catalog.sum(done.rows_filtered), pg_catalog.max(done.text_hash)
FROM {schema}.commit AS done LEFT JOIN {schema}.slice AS planned USING (run_id, task, slice)
WHERE run_id = $1 AND task = $2
GROUP BY slice, planned.units
HAVING pg_catalog.count(*) = coalesce(planned.units, 1)
ORDER BY slice
