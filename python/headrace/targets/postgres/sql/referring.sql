-- Other tables with a foreign key to table $1: schema, name, oid, and whether the user may lock them.
SELECT DISTINCT n.nspname, c.relname, c.oid, pg_catalog.has_table_privilege(c.oid, 'UPDATE, DELETE, TRUNCATE') AS may_lock
FROM pg_catalog.pg_constraint AS k
JOIN pg_catalog.pg_class AS c ON c.oid = k.conrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE k.contype = 'f' AND k.confrelid = $1::oid AND k.conrelid <> $1::oid AND k.conparentid = 0
ORDER BY n.nspname, c.relname
