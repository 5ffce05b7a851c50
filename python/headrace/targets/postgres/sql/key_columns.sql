-- Columns of unique index $3 of table $2 in schema $1, in the order of the key; no rows if it is partial or has expressions:
-- name, type that is compared, whether by the default operators of the server and byte by byte where it is text, whether two
-- NULLs are the same, the constraint or index as people know it, and whether it is that of a partition alone.
SELECT a.attname, pg_catalog.format_type(o.opcintype, NULL) AS compared,
       o.opcdefault AND o.opcnamespace = 'pg_catalog'::regnamespace AND coalesce(l.collisdeterministic, true) AS is_plain,
       x.indnullsnotdistinct AS nulls_equal,
       coalesce(pg_catalog.pg_get_constraintdef(k.oid), 'index ' || pg_catalog.quote_ident(i.relname)) AS text,
       t.relispartition AND NOT i.relispartition AS is_alone
FROM pg_catalog.pg_index AS x
JOIN pg_catalog.pg_class AS i ON i.oid = x.indexrelid
JOIN pg_catalog.pg_class AS t ON t.oid = x.indrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
CROSS JOIN LATERAL unnest(x.indkey::int2[], x.indclass::oid[], x.indcollation::oid[])
  WITH ORDINALITY AS unit (attnum, class_oid, collation_oid, number)
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = x.indrelid AND a.attnum = unit.attnum
JOIN pg_catalog.pg_opclass AS o ON o.oid = unit.class_oid
LEFT JOIN pg_catalog.pg_collation AS l ON l.oid = unit.collation_oid
LEFT JOIN pg_catalog.pg_constraint AS k ON k.conindid = i.oid AND k.conrelid = x.indrelid AND k.contype IN ('p', 'u')
WHERE n.nspname = $1 AND t.relname = $2 AND i.relname = $3
  AND x.indisunique AND x.indpred IS NULL AND x.indexprs IS NULL AND unit.number <= x.indnkeyatts
ORDER BY unit.number
