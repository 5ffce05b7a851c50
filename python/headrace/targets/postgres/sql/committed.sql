-- Complete slices of a task, and all rows that are committed.
SELECT pg_catalog.count(*) FILTER (WHERE units_done = units), coalesce(pg_catalog.sum(rows_loaded), 0)
FROM (
  SELECT slice.units, pg_catalog.count(*) AS units_done, pg_catalog.sum(done.rows_loaded) AS rows_loaded
  FROM {schema}.commit AS done JOIN {schema}.slice USING (run_id, task, slice)
  WHERE run_id = $1 AND task = $2 AND slice > 0
  GROUP BY slice, slice.units
) AS slices
