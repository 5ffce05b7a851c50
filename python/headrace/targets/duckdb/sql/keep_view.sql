INSERT INTO target.headrace.divided_view
SELECT schema_name, view_name, sql, $strategy, $column, $members FROM duckdb_views()
WHERE database_name = 'target' AND lower(schema_name) = lower($schema) AND lower(view_name) = lower($table)
