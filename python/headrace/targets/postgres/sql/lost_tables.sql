-- Tables of which a run has made rows visible: those switched in, and those it appended to directly.
SELECT DISTINCT slice."table" AS name
FROM {schema}.commit JOIN {schema}.slice USING (run_id, task)
WHERE run_id = $1 AND (commit.slice = 0 OR slice.staging IS NULL)
ORDER BY name
