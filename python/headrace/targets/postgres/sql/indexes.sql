-- Indexes of table $1, as people know them.
SELECT coalesce(pg_catalog.pg_get_constraintdef(k.oid), 'index ' || quote_ident(i.relname)) AS name
FROM pg_catalog.pg_index AS x
JOIN pg_catalog.pg_class AS i ON i.oid = x.indexrelid
LEFT JOIN pg_catalog.pg_constraint AS k ON k.conindid = i.oid AND k.conrelid = x.indrelid AND k.contype IN ('p', 'u', 'x')
WHERE x.indrelid = $1::oid
ORDER BY x.indisprimary DESC, i.relname
