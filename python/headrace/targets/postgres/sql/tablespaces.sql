-- The tablespaces in which the user may make tables; that of the database is open to everybody.
SELECT t.spcname
FROM pg_catalog.pg_tablespace AS t
WHERE t.spcname <> 'pg_global'
  AND (pg_catalog.has_tablespace_privilege(t.oid, 'CREATE')
       OR t.oid = (SELECT d.dattablespace FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database()))
ORDER BY t.spcname
