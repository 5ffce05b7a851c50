-- Hidden tables of a task that hold committed rows.
SELECT DISTINCT slice.staging
FROM {schema}.slice JOIN {schema}.commit USING (run_id, task, slice)
WHERE run_id = $1 AND task = $2 AND slice.staging IS NOT NULL
ORDER BY slice.staging
