-- Who holds an advisory lock of 64 bits: pg_locks shows its upper and lower halves.
SELECT activity.application_name, locks.pid, activity.usename, 
       CASE WHEN activity.client_addr IS NOT NULL THEN pg_catalog.host(activity.client_addr)
            WHEN activity.client_port IS NULL THEN 'a host that only its own user may see'
            ELSE 'the same machine' END
FROM pg_catalog.pg_locks AS locks LEFT JOIN pg_catalog.pg_stat_activity AS activity ON activity.pid = locks.pid
WHERE locks.locktype = 'advisory' AND locks.granted AND locks.objsubid = 1
  AND locks.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
  AND locks.classid::bigint = ($1::bigint >> 32) & 4294967295 AND locks.objid::bigint = $1::bigint & 4294967295
