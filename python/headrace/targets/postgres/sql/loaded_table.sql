-- Where a run has loaded a task, and whether all of it is visible.
SELECT slice."schema", slice."table",
       EXISTS (SELECT FROM {schema}.commit WHERE run_id = $1 AND task = $2 AND slice = 0)
FROM {schema}.slice WHERE slice.run_id = $1 AND slice.task = $2 LIMIT 1
