-- Whatever has this name among tables: $1 schema, $2 name.
SELECT c.oid,
       CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
            WHEN 'f' THEN 'foreign table' WHEN 'S' THEN 'sequence' WHEN 'c' THEN 'composite type' ELSE 'index' END AS kind,
       c.relkind = 'p' AS partitioned,
       pg_catalog.pg_get_userbyid(c.relowner) AS owner,
       pg_catalog.pg_has_role(c.relowner, 'USAGE') AS is_owner
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2
