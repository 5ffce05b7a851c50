-- Sessions of a run in the middle of a unit: they hold the writers' advisory lock of the run, of 64 bits, which pg_locks
-- shows in halves. Whose they are, and whether we may end them.
SELECT DISTINCT activity.pid, activity.usename, pg_catalog.pg_has_role(activity.usesysid, 'USAGE')
       OR pg_catalog.pg_has_role('pg_signal_backend', 'USAGE') AS may_end
FROM pg_catalog.pg_locks AS locks JOIN pg_catalog.pg_stat_activity AS activity USING (pid)
WHERE locks.locktype = 'advisory' AND locks.granted AND locks.objsubid = 1 AND locks.pid <> pg_catalog.pg_backend_pid()
  AND locks.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
  AND locks.classid::bigint = ($1::bigint >> 32) & 4294967295 AND locks.objid::bigint = $1::bigint & 4294967295
ORDER BY activity.pid
