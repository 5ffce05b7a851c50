-- Hidden tables of a task that hold committed rows; NULL: its rows went straight into the target.
SELECT DISTINCT slice.staging
FROM {schema}.slice JOIN {schema}.commit USING (run_id, task, slice)
WHERE run_id = $1 AND task = $2
ORDER BY slice.staging
