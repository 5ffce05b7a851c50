-- What the user may do with table $1.
SELECT has_any_column_privilege($1::oid, 'INSERT') AS may_insert,
       has_table_privilege($1::oid, 'TRUNCATE') AS may_truncate,
       has_schema_privilege((SELECT relnamespace FROM pg_catalog.pg_class WHERE oid = $1::oid), 'CREATE') AS may_create
