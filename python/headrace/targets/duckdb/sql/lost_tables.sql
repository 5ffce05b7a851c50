-- Tables in which runs have committed rows that are still there: no later run has replaced them, and nobody has dropped the table.
SELECT DISTINCT own.run_id, own."table"
FROM target.headrace.commit AS done JOIN target.headrace.slice AS own USING (run_id, task, slice)
WHERE list_contains($run_ids::VARCHAR[], own.run_id) AND list_contains($targets::VARCHAR[], own.target)
  AND EXISTS (
    SELECT 1 FROM (
      SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'target'
      UNION ALL SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'target'
    ) AS there
    WHERE lower(there.schema_name) = lower(own."schema") AND lower(there.table_name) = lower(own."table")
  )
  AND NOT EXISTS (
    SELECT 1 FROM target.headrace.commit AS later JOIN target.headrace.slice AS other USING (run_id, task, slice)
    WHERE later.committed_at > done.committed_at AND other.target <> 'append' AND other."table" = own."table"
  )
ORDER BY own.run_id, own."table"
