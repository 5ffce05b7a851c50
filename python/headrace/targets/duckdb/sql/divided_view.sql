-- How a view is divided, if it still is what a load has made of it.
SELECT known.strategy, known."column", known.members
FROM target.headrace.divided_view AS known JOIN duckdb_views() AS found
  ON lower(found.schema_name) = lower(known.schema) AND lower(found.view_name) = lower(known.view)
  AND found.sql = known.definition
WHERE found.database_name = 'target' AND lower(known.schema) = lower($schema) AND lower(known.view) = lower($table)
