-- Claims on the rejects of a task, and since when they hold: rows of a replay are visible with slice 0, or with any commit row of a
-- unit that goes straight into the table.
SELECT claim.run_id, claim.first_number, claim.last_number, claim.action, own.status,
       pg_catalog.to_char(done.taken_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"+00:00"'), done.loaded, done.rejected, done.filtered,
       -- A ledger of an earlier version has no such column.
       (pg_catalog.to_jsonb(claim) ->> 'rows_added')::bigint, done.taken_at IS NOT NULL AND NOT done.is_switched AS is_half
FROM {schema}.replay AS claim
JOIN {schema}.run AS own USING (run_id)
CROSS JOIN LATERAL (
  SELECT pg_catalog.min(part.committed_at)
           FILTER (WHERE part.slice = 0 OR (unit.run_id IS NOT NULL AND unit.staging IS NULL)) AS taken_at,
         coalesce(pg_catalog.bool_or(part.slice = 0), false) AS is_switched,
         pg_catalog.sum(part.rows_loaded) AS loaded, pg_catalog.sum(part.rows_rejected) AS rejected,
         pg_catalog.sum((pg_catalog.to_jsonb(part) ->> 'rows_filtered')::bigint) AS filtered
  FROM {schema}.commit AS part LEFT JOIN {schema}.unit AS unit USING (run_id, task, "partition")
  WHERE part.run_id = claim.run_id AND part.task = claim.task
) AS done
WHERE claim.of_run = $1 AND claim.task = $2
ORDER BY claim.first_number, own.started_at
