-- A foreign key refers to a table of its own schema.
SELECT DISTINCT table_name FROM duckdb_constraints()
WHERE database_name = 'target' AND constraint_type = 'FOREIGN KEY'
  AND lower(schema_name) = lower($schema) AND lower(referenced_table) = lower($table)
ORDER BY table_name
