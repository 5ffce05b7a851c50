-- The committed slices of a task, each with its account; 0 is the switch.
SELECT slice, rows_loaded, rows_rejected, rows_skipped FROM {schema}.commit WHERE run_id = $1 AND task = $2
ORDER BY slice
