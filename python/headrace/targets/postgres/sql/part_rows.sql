-- How many rows each partition of {table} has. By way of the table: who may read it need not have a right to its partitions.
SELECT n.nspname, c.relname, counted.row_count
FROM (SELECT tableoid AS oid, pg_catalog.count(*) AS row_count FROM {table} GROUP BY 1) AS counted
JOIN pg_catalog.pg_class AS c ON c.oid = counted.oid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
