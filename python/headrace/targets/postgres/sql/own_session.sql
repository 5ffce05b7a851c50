-- The process that serves this session, and since when.
SELECT pid, pg_catalog.date_part('epoch', backend_start) FROM pg_catalog.pg_stat_activity
WHERE pid = pg_catalog.pg_backend_pid()
