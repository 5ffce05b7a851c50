SELECT estimated_size FROM duckdb_tables()
WHERE database_name = 'target' AND lower(schema_name) = lower($schema) AND lower(table_name) = lower($table)
