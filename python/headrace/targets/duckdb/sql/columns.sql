SELECT table_name, column_name, data_type, numeric_precision, numeric_scale, is_nullable,
       column_default IS NOT NULL AS has_default, is_generated
FROM duckdb_columns()
WHERE database_name = 'target' AND lower(schema_name) = lower($schema) AND lower(table_name) = lower($table)
ORDER BY column_index
