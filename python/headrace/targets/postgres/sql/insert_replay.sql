INSERT INTO {schema}.replay (run_id, task, of_run, first_number, last_number, action, file_hash, rows_added)
SELECT $1, $2, $3, claimed.first_number, claimed.last_number, claimed.action, $4, $5::bigint
FROM unnest($6::bigint[], $7::bigint[], $8::text[]) AS claimed (first_number, last_number, action)
ON CONFLICT DO NOTHING -- an attempt that went on has claimed the same
