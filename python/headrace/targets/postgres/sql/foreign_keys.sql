-- Foreign keys of table $1 to other tables: name, definition, the other table, and whether the user may lock that one.
SELECT k.conname, pg_catalog.pg_get_constraintdef(k.oid), n.nspname, c.relname,
       pg_catalog.has_table_privilege(c.oid, 'UPDATE, DELETE, TRUNCATE') AS may_lock
FROM pg_catalog.pg_constraint AS k
JOIN pg_catalog.pg_class AS c ON c.oid = k.confrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
-- One to a partitioned table has more rows, for its partitions.
LEFT JOIN pg_catalog.pg_constraint AS above ON above.oid = k.conparentid
WHERE k.contype = 'f' AND k.conrelid = $1::oid AND k.confrelid <> $1::oid AND above.conrelid IS DISTINCT FROM k.conrelid
ORDER BY n.nspname, c.relname, k.conname
