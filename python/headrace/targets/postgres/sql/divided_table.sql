-- What the quoted name $1 means in a FROM: its schema and name first; then, of itself and of all tables that are parts of
-- it or inherit from it, schema, name, kind, pages and oid.
WITH RECURSIVE listed (oid, depth) AS (
  SELECT pg_catalog.to_regclass($1)::oid, 0 WHERE pg_catalog.to_regclass($1) IS NOT NULL
  UNION
  SELECT i.inhrelid, listed.depth + 1 FROM listed JOIN pg_catalog.pg_inherits AS i ON i.inhparent = listed.oid
)
SELECT top_schema.nspname, top.relname, n.nspname, c.relname, c.relkind,
       CASE WHEN c.relkind = 'r'
            THEN pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::bigint END,
       c.oid
FROM (SELECT oid, pg_catalog.min(depth) AS depth FROM listed GROUP BY oid) AS tables
JOIN pg_catalog.pg_class AS c ON c.oid = tables.oid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_class AS top ON top.oid = pg_catalog.to_regclass($1)::oid
JOIN pg_catalog.pg_namespace AS top_schema ON top_schema.oid = top.relnamespace
ORDER BY tables.depth, c.oid
