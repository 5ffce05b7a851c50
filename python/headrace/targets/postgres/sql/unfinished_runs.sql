SELECT run_id FROM {schema}.run
-- Not replays, whose rows nobody else appends; a ledger of an earlier version has none, and no such column.
WHERE pg_catalog.to_jsonb(run) ->> 'of_run' IS NULL AND package = $1 AND status NOT IN ('success', 'abandoned')
ORDER BY started_at
