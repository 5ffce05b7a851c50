-- What the COPY of every session of ours is at: it changes as long as its process works, whatever the network does.
SELECT p.pid, pg_catalog.concat_ws(' ', p.bytes_processed, p.tuples_processed, a.wait_event_type, a.wait_event)
FROM pg_catalog.pg_stat_progress_copy p
JOIN pg_catalog.pg_stat_activity a ON a.pid = p.pid
WHERE a.datname = pg_catalog.current_database() AND a.usename = current_user
