-- What table or view $1 consists of, and how many bytes each part takes without its indexes: the last level of
-- partitions; of a view of the kind that a load with `view` makes, its tables.
WITH shown AS (
  SELECT DISTINCT t.oid, t.relname, t.relkind, t.relnamespace
  FROM pg_catalog.pg_rewrite AS r
  JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_rewrite'::regclass::oid AND d.objid = r.oid
  JOIN pg_catalog.pg_class AS t ON t.oid = d.refobjid AND t.oid <> r.ev_class
  WHERE r.ev_class = $1::oid AND d.refclassid = 'pg_catalog.pg_class'::regclass::oid
), parts AS (
  SELECT tree.relid::oid AS oid FROM pg_catalog.pg_partition_tree($1::oid::regclass) AS tree
  WHERE tree.isleaf AND tree.level > 0
  UNION ALL
  SELECT shown.oid FROM shown
  WHERE (SELECT pg_catalog.bool_and(other.relkind = 'r' AND other.relnamespace = v.relnamespace
                         AND pg_catalog.starts_with(other.relname::text, v.relname::text || '_')
                         AND pg_catalog.substr(other.relname::text, pg_catalog.length(v.relname::text) + 2) ~ '^[0-9]+$')
         FROM shown AS other, pg_catalog.pg_class AS v WHERE v.oid = $1::oid)
)
SELECT n.nspname, c.relname, pg_catalog.pg_table_size(c.oid)
FROM parts JOIN pg_catalog.pg_class AS c ON c.oid = parts.oid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
ORDER BY pg_catalog.length(c.relname::text), c.relname
