-- As watched_server.sql.
SELECT checkpoints_timed, checkpoints_req, checkpoint_write_time, checkpoint_sync_time,
       pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), '0/0'::pg_catalog.pg_lsn)
FROM pg_catalog.pg_stat_bgwriter
