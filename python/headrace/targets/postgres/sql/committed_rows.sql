-- Rows of a task by partition.
SELECT "partition", pg_catalog.sum(rows_loaded) FROM {schema}.commit WHERE run_id = $1 AND task = $2 AND slice > 0
GROUP BY "partition"
