-- Partitions of the first level of table $1 with their bounds as the server writes them.
SELECT n.nspname, c.relname, pg_catalog.pg_get_expr(c.relpartbound, c.oid) AS bound, c.oid
FROM pg_catalog.pg_inherits AS i
JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE i.inhparent = $1::oid
ORDER BY c.oid
