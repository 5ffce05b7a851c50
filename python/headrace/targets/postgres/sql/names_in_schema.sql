-- Names that a new table cannot have: those of relations, and those of types, because every table makes one.
SELECT relname AS name FROM pg_catalog.pg_class WHERE relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1)
UNION
SELECT typname FROM pg_catalog.pg_type WHERE typnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1)
