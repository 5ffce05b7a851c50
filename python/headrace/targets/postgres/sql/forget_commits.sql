-- Their rows were in tables that are dropped in this transaction.
DELETE FROM {schema}.commit
WHERE run_id = $1 AND slice > 0
  AND (task, slice) IN (SELECT task, slice FROM {schema}.slice WHERE run_id = $1 AND staging = ANY ($2::text[]))
