-- Claims on the rejects of a task, and whether they hold: rows of a replay are visible with slice 0.
SELECT claim.run_id, claim.first_number, claim.last_number, claim.action, own.status, epoch_us(done.committed_at),
       coalesce(rows.loaded, 0)::BIGINT, coalesce(rows.rejected, 0)::BIGINT, coalesce(rows.filtered, 0)::BIGINT,
       (to_json(claim) ->> '$.rows_added')::BIGINT -- a ledger of an earlier version has no such column
FROM target.headrace.replay AS claim
JOIN target.headrace.run AS own USING (run_id)
LEFT JOIN target.headrace.commit AS done ON done.run_id = claim.run_id AND done.task = claim.task AND done.slice = 0
LEFT JOIN (
  SELECT run_id, task, sum(rows_loaded) AS loaded, sum(rows_rejected) AS rejected,
         sum((to_json(part) ->> '$.rows_filtered')::BIGINT) AS filtered
  FROM target.headrace.commit AS part GROUP BY run_id, task
) AS rows ON rows.run_id = claim.run_id AND rows.task = claim.task
WHERE claim.of_run = $of_run AND claim.task = $task
ORDER BY claim.first_number, own.started_at
