-- Checkpoints since the server has started, in times and milliseconds, and how far its log has come, in bytes.
SELECT num_timed, num_requested, write_time, sync_time,
       pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), '0/0'::pg_catalog.pg_lsn)
FROM pg_catalog.pg_stat_checkpointer
