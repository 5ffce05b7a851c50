-- Of tables by their schemas ($1) and names ($2) those with 1 MB or more of which the server has never counted rows.
SELECT DISTINCT n.nspname, c.relname
FROM (SELECT pg_catalog.unnest($1::text[]) AS schema, pg_catalog.unnest($2::text[]) AS name) AS read
JOIN pg_catalog.pg_namespace AS n ON n.nspname = read.schema
JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid AND c.relname = read.name
WHERE c.relkind IN ('r', 'm') AND c.relpages = 0 AND pg_catalog.pg_relation_size(c.oid) >= 1048576
ORDER BY 1, 2
