SELECT run_id FROM target.headrace.run
-- Not replays, whose rows nobody else appends; a ledger of an earlier version has none, and no such column.
WHERE to_json(run) ->> '$.of_run' IS NULL AND package = $package AND status NOT IN ('success', 'abandoned')
ORDER BY started_at
