-- The slices, and slice 0 for the task as a whole, which may have no other.
INSERT INTO target.headrace.slice
  (run_id, task, slice, "table", target, file, begin_byte, end_byte, file_bytes, modified_ns, "schema")
SELECT $run_id, $task, slice, $table, $target, file, begin_byte, end_byte, file_bytes, modified_ns, $schema
FROM (
  SELECT unnest($slices::INTEGER[]) AS slice,
         unnest($files::VARCHAR[]) AS file,
         unnest($begin_bytes::BIGINT[]) AS begin_byte,
         unnest($end_bytes::BIGINT[]) AS end_byte,
         unnest($file_bytes::BIGINT[]) AS file_bytes,
         unnest($modified_ns::BIGINT[]) AS modified_ns
  UNION ALL SELECT 0, '', 0, 0, 0, 0
)
