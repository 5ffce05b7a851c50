-- What the user may do with table $1. A hidden table like it can only be made by who may read it.
SELECT pg_catalog.has_any_column_privilege($1::oid, 'INSERT') AS may_insert,
       pg_catalog.has_table_privilege($1::oid, 'SELECT') AS may_select,
       pg_catalog.has_table_privilege($1::oid, 'TRUNCATE') AS may_truncate
