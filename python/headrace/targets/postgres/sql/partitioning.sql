-- How table $1 is partitioned: strategy, and the columns of its key; an expression makes the key one text.
SELECT CASE p.partstrat WHEN 'r' THEN 'range' WHEN 'l' THEN 'list' ELSE 'hash' END AS strategy, keys.name
FROM pg_catalog.pg_partitioned_table AS p
CROSS JOIN LATERAL (
  SELECT pg_catalog.pg_get_partkeydef(p.partrelid) AS name, 1 AS position WHERE p.partexprs IS NOT NULL
  UNION ALL
  SELECT a.attname, key.position
  FROM pg_catalog.unnest(p.partattrs::int2[]) WITH ORDINALITY AS key (number, position)
  JOIN pg_catalog.pg_attribute AS a ON a.attrelid = p.partrelid AND a.attnum = key.number
  WHERE p.partexprs IS NULL
) AS keys
WHERE p.partrelid = $1::oid
ORDER BY keys.position
