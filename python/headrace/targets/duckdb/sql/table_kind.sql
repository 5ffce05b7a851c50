SELECT schema_name, table_name, 'table' AS kind FROM duckdb_tables()
WHERE database_name = 'target' AND lower(schema_name) = lower($schema) AND lower(table_name) = lower($table)
UNION ALL
SELECT schema_name, view_name, 'view' FROM duckdb_views()
WHERE database_name = 'target' AND lower(schema_name) = lower($schema) AND lower(view_name) = lower($table)
