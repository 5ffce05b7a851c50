-- Ends a session of ours that nobody listens to any more; no row: it has ended.
SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE pid = $1::int AND backend_start::text = $2
