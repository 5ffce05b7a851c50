-- Of all tables that this session has locked, but not $1: these, and the tables that are parts of them or inherit from them.
SELECT i.inhparent, i.inhrelid FROM pg_catalog.pg_inherits AS i
WHERE i.inhparent IN (SELECT l.relation FROM pg_catalog.pg_locks AS l
                      WHERE l.pid = pg_catalog.pg_backend_pid() AND l.locktype = 'relation')
  AND i.inhparent <> ALL ($1::oid[])
