-- How to make the indexes of table $1 anew on another table: name, whether it is a constraint's, and the definition behind
-- `ADD CONSTRAINT name` or `CREATE [UNIQUE] INDEX name ON table`. The server writes a known text before the latter;
-- NULL if it does not. Then what the server would make its name of: the columns (none of a primary key), and the label.
SELECT coalesce(k.conname, i.relname) AS name,
       k.oid IS NOT NULL AS is_constraint,
       x.indisunique AS is_unique,
       CASE
         WHEN k.oid IS NOT NULL THEN pg_catalog.pg_get_constraintdef(k.oid)
         WHEN pg_catalog.starts_with(definition.text, definition.head) THEN pg_catalog.substr(definition.text, pg_catalog.length(definition.head) + 1)
       END AS definition,
       CASE WHEN k.contype IS DISTINCT FROM 'p' THEN (
         SELECT pg_catalog.string_agg(a.attname::text, '_' ORDER BY a.attnum) FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = i.oid)
       END AS columns,
       CASE k.contype WHEN 'p' THEN 'pkey' WHEN 'u' THEN 'key' WHEN 'x' THEN 'excl' ELSE 'idx' END AS label
FROM pg_catalog.pg_index AS x
JOIN pg_catalog.pg_class AS i ON i.oid = x.indexrelid
JOIN pg_catalog.pg_class AS t ON t.oid = x.indrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
LEFT JOIN pg_catalog.pg_constraint AS k ON k.conindid = i.oid AND k.conrelid = x.indrelid AND k.contype IN ('p', 'u', 'x')
CROSS JOIN LATERAL (
  SELECT pg_catalog.pg_get_indexdef(i.oid) AS text,
         pg_catalog.format('CREATE %sINDEX %I ON %s%I.%I', CASE WHEN x.indisunique THEN 'UNIQUE ' END, i.relname,
                CASE WHEN i.relkind = 'I' THEN 'ONLY ' END, n.nspname, t.relname) AS head
) AS definition
WHERE x.indrelid = $1::oid
ORDER BY x.indisprimary DESC, k.oid IS NULL, i.relname
