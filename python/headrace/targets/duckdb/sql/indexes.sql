SELECT constraint_text AS name FROM duckdb_constraints()
WHERE database_name = 'target' AND lower(schema_name) = lower($schema) AND lower(table_name) = lower($table)
  AND constraint_type IN ('PRIMARY KEY', 'UNIQUE')
UNION ALL
SELECT 'index ' || index_name FROM duckdb_indexes()
WHERE database_name = 'target' AND lower(schema_name) = lower($schema) AND lower(table_name) = lower($table)
