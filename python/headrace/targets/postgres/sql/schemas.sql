SELECT nspname FROM pg_catalog.pg_namespace
WHERE nspname::text NOT LIKE 'pg\_%' AND nspname <> 'information_schema' AND pg_catalog.has_schema_privilege(oid, 'USAGE')
ORDER BY nspname
