-- Hidden tables of a task that hold committed rows; NULL: its rows went straight into the target.
SELECT DISTINCT unit.staging
FROM {schema}.unit JOIN {schema}.commit USING (run_id, task, "partition")
WHERE run_id = $1 AND task = $2 AND slice > 0
ORDER BY unit.staging
