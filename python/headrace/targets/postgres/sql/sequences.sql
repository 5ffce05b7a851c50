-- Sequences that belong to columns of table $1: column, sequence, and whether it is an identity's.
SELECT a.attname, n.nspname, s.relname, d.deptype = 'i' AS is_identity
FROM pg_catalog.pg_depend AS d
JOIN pg_catalog.pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'
JOIN pg_catalog.pg_namespace AS n ON n.oid = s.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
WHERE d.classid = 'pg_catalog.pg_class'::regclass::oid AND d.refclassid = 'pg_catalog.pg_class'::regclass::oid AND d.refobjid = $1::oid
  AND d.deptype IN ('a', 'i')
ORDER BY a.attnum
