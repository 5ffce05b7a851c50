-- Whether the table of a task is still the one into which its rows went.
SELECT true FROM {schema}.slice JOIN {schema}.run USING (run_id)
WHERE slice.run_id = $1 AND slice.task = $2 AND slice.slice = 0 AND {is_same}
