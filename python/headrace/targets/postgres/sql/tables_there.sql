-- Those of the tables $1 that the snapshot of the transaction knows.
SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = ANY ($1::oid[]) ORDER BY 1
