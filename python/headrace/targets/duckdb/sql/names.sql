SELECT table_name FROM duckdb_tables() WHERE database_name = 'target' AND lower(schema_name) = lower($schema)
UNION ALL
SELECT view_name FROM duckdb_views() WHERE database_name = 'target' AND lower(schema_name) = lower($schema)
