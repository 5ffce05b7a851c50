-- What the writers of a load are doing at this moment, and the checkpointer. $1: how the names of their sessions begin,
-- those of each of its tables.
-- Who waits for whom is asked only of sessions that wait for a lock: the answer holds up everybody who wants one.
SELECT a.pid, pg_catalog.date_part('epoch', a.backend_start) AS started_at, a.backend_type = 'checkpointer', a.state,
       a.wait_event_type, a.wait_event, p.tuples_processed,
       CASE WHEN a.wait_event_type = 'Lock'
            THEN pg_catalog.array_to_string(pg_catalog.pg_blocking_pids(a.pid), ' ') END AS blocked_by
FROM pg_catalog.pg_stat_activity AS a LEFT JOIN pg_catalog.pg_stat_progress_copy AS p ON p.pid = a.pid
WHERE a.backend_type = 'checkpointer'
   OR a.datname = pg_catalog.current_database() AND a.usename = session_user
      AND EXISTS (SELECT FROM pg_catalog.unnest($1) AS beginning WHERE pg_catalog.starts_with(a.application_name, beginning))
