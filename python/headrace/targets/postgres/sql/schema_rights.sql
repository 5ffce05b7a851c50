-- Null if there is no schema $1; else whether the user may use it and create tables there.
SELECT pg_catalog.has_schema_privilege(oid, 'USAGE') AS may_use, pg_catalog.has_schema_privilege(oid, 'CREATE') AS may_create
FROM pg_catalog.pg_namespace WHERE nspname = $1
