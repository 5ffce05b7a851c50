-- Whether the task was planned, and the numbers of its committed slices with blanks between them.
SELECT EXISTS (SELECT 1 FROM {schema}.slice WHERE run_id = $1 AND task = $2),
       (SELECT pg_catalog.string_agg(slice::text, ' ') FROM {schema}.commit WHERE run_id = $1 AND task = $2)
