SELECT relname FROM pg_catalog.pg_class
WHERE relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1) AND relkind IN ('r', 'p')
ORDER BY relname
