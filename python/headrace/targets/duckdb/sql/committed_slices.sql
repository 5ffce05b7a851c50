-- The committed slices of a task, each with its account.
SELECT slice, rows_loaded, rows_rejected, rows_skipped, values_ignored, text_hash, coalesce(rows_filtered, 0)
FROM target.headrace.commit
WHERE run_id = $run_id AND task = $task AND slice > 0
ORDER BY slice
