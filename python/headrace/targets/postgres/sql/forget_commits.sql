-- Their rows were in tables that are dropped in this transaction. Slices that have rows in other tables too are incomplete
-- then: those of the dropped tables are loaded again, those of the others only counted.
DELETE FROM {schema}.commit
WHERE run_id = $1 AND slice > 0
  AND (task, "partition") IN (SELECT task, "partition" FROM {schema}.unit WHERE run_id = $1 AND staging = ANY ($2::text[]))
