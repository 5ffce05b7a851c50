-- Unique and exclusion constraints and indexes of table $1 and its partitions, as people know them: the primary key first.
SELECT name FROM (
  SELECT coalesce(pg_catalog.pg_get_constraintdef(k.oid), 'index ' || pg_catalog.quote_ident(i.relname)) AS name,
         x.indrelid <> $1::oid AS is_partitions, NOT x.indisprimary AS is_other
  FROM pg_catalog.pg_index AS x
  JOIN pg_catalog.pg_class AS i ON i.oid = x.indexrelid
  LEFT JOIN pg_catalog.pg_constraint AS k
    ON k.conindid = i.oid AND k.conrelid = x.indrelid AND k.contype IN ('p', 'u', 'x')
  WHERE x.indrelid IN (SELECT $1::oid UNION SELECT relid FROM pg_catalog.pg_partition_tree($1::oid))
    AND (x.indisunique OR x.indisexclusion)
) AS keys
GROUP BY name
ORDER BY pg_catalog.min(is_partitions::int), pg_catalog.min(is_other::int), name
