SELECT later.run_id FROM {schema}.run AS later JOIN {schema}.run AS own ON own.run_id = $1
WHERE later.package = $2 AND later.of_run IS NULL AND later.started_at > own.started_at
ORDER BY later.started_at DESC LIMIT 1
