-- Tables in which a run has made rows visible that are still there: those switched in, and those it appended to directly; loaded in one
-- of these ways.
SELECT DISTINCT slice."table" AS name
FROM {schema}.commit JOIN {schema}.slice USING (run_id, task) JOIN {schema}.run USING (run_id)
WHERE run_id = $1 AND slice.target = ANY ($2::text[]) AND {is_same}
  AND (commit.slice = 0 OR EXISTS (SELECT FROM {schema}.unit WHERE unit.run_id = $1 AND unit.task = slice.task AND unit.staging IS NULL))
  AND NOT EXISTS (
    SELECT FROM {schema}.slice AS other JOIN {schema}.commit AS later USING (run_id, task)
    WHERE later.slice = 0 AND later.committed_at > commit.committed_at AND other.target NOT IN ('append', 'reload')
      AND other."schema" = slice."schema" AND other."table" = slice."table"
  )
ORDER BY name
