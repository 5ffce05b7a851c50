-- Whoever holds any lock of table $1, of its partitions or of what a view reads: all of them keep an exclusive lock waiting. A prepared transaction
-- has no process.
SELECT DISTINCT pg_catalog.concat_ws(' ',
         CASE WHEN locks.pid IS NULL THEN 'a prepared transaction' ELSE pg_catalog.format('session %s', locks.pid) END,
         pg_catalog.format('(%s)', nullif(activity.application_name, '')), 'of user ' || activity.usename::text) AS holder
FROM pg_catalog.pg_locks AS locks LEFT JOIN pg_catalog.pg_stat_activity AS activity ON activity.pid = locks.pid
WHERE locks.locktype = 'relation' AND locks.granted AND locks.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
  AND locks.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
  AND locks.relation IN (SELECT $1::oid UNION SELECT relid FROM pg_catalog.pg_partition_tree($1::oid)
                         UNION
                         SELECT d.refobjid FROM pg_catalog.pg_rewrite AS r JOIN pg_catalog.pg_depend AS d ON d.objid = r.oid
                         WHERE r.ev_class = $1::oid AND d.classid = 'pg_catalog.pg_rewrite'::regclass::oid
                           AND d.refclassid = 'pg_catalog.pg_class'::regclass::oid)
ORDER BY holder
