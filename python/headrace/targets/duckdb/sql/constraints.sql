-- What rows of a table can break: text, condition of a CHECK (NULL: a key), columns as quoted names or, in an index,
-- whatever expressions; and whether a column of the table compares text in another way than byte by byte.
-- NOT NULL is checked by the parser.
WITH name AS (
  SELECT schema_name, table_name, contains(lower(sql), ' collate ') AS is_collated FROM duckdb_tables()
  WHERE database_name = 'target' AND lower(schema_name) = lower($schema) AND lower(table_name) = lower($table)
)
SELECT constraint_text, expression,
       list_transform(constraint_column_names, lambda part: '"' || replace(part, '"', '""') || '"'), is_collated
FROM duckdb_constraints() JOIN name USING (schema_name, table_name)
WHERE database_name = 'target' AND constraint_type IN ('PRIMARY KEY', 'UNIQUE', 'CHECK')
UNION ALL
SELECT 'index ' || index_name, NULL,
       list_transform(CAST(expressions AS VARCHAR[]),
                      lambda part: CASE WHEN starts_with(part, '"') THEN part ELSE '"' || part || '"' END), is_collated
FROM duckdb_indexes() JOIN name USING (schema_name, table_name)
WHERE database_name = 'target' AND is_unique
ORDER BY ALL
