SELECT nspname FROM pg_catalog.pg_namespace
WHERE nspname NOT LIKE 'pg\_%' AND nspname <> 'information_schema' AND has_schema_privilege(oid, 'USAGE')
ORDER BY nspname
