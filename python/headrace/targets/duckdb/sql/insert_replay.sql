INSERT INTO target.headrace.replay (run_id, task, of_run, first_number, last_number, action, file_hash, rows_added)
SELECT $run_id, $task, $of_run, first_number, last_number, action, $file_hash, $rows_added
FROM (
  SELECT unnest($first_numbers::BIGINT[]) AS first_number,
         unnest($last_numbers::BIGINT[]) AS last_number,
         unnest($actions::VARCHAR[]) AS action
)
ON CONFLICT DO NOTHING -- an attempt that went on has claimed the same
