SELECT 1 FROM duckdb_tables() WHERE database_name = 'target' AND schema_name = 'headrace' AND table_name = 'replay'
