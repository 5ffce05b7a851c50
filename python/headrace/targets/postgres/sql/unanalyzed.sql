-- Of tables by their schemas ($1) and names ($2) those with 1 MB or more of which the server has never counted rows.
SELECT DISTINCT n.nspname, c.relname
FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[])) AS read (schema, name)
JOIN pg_catalog.pg_namespace AS n ON n.nspname = read.schema
JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid AND c.relname = read.name
WHERE c.relkind IN ('r', 'm') AND c.relpages = 0 AND pg_catalog.pg_relation_size(c.oid) >= 1048576
ORDER BY 1, 2
