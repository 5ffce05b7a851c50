-- The slices, and slice 0 for the task as a whole.
INSERT INTO target.headrace.commit
  (run_id, task, slice, "partition", rows_loaded, rows_rejected, rows_skipped, text_bytes, values_ignored,
   rows_filtered, text_hash, committed_at)
SELECT $run_id, $task, slice, $partition, rows_loaded, rows_rejected, rows_skipped, text_bytes, values_ignored,
       rows_filtered, text_hash, $now
FROM (
  SELECT unnest($slices::INTEGER[]) AS slice,
         unnest($rows_loaded::BIGINT[]) AS rows_loaded,
         unnest($rows_rejected::BIGINT[]) AS rows_rejected,
         unnest($rows_skipped::BIGINT[]) AS rows_skipped,
         unnest($text_bytes::BIGINT[]) AS text_bytes,
         unnest($values_ignored::BIGINT[]) AS values_ignored,
         unnest($rows_filtered::BIGINT[]) AS rows_filtered,
         unnest($text_hashes::VARCHAR[]) AS text_hash
  UNION ALL SELECT 0, 0, 0, 0, 0, 0, 0, NULL
)
