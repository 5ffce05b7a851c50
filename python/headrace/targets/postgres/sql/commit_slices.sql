-- The fence: a unit commits only while its attempt of the run goes on. The lock lasts until the commit, so that
-- whoever takes the run over waits for it, and everybody behind it finds no row.
WITH fence AS (
  SELECT run_id FROM {schema}.run
  WHERE run_id = {run_id} AND attempt = {attempt} AND status = 'running'
  FOR SHARE
)
INSERT INTO {schema}.commit (run_id, task, slice, "partition", rows_loaded, rows_rejected, rows_skipped, text_bytes,
                             values_ignored, rows_filtered, text_hash, committed_at)
SELECT fence.run_id, {task}, unit.slice, $1::text, unit.rows_loaded, unit.rows_rejected, unit.rows_skipped, unit.text_bytes,
       unit.values_ignored, unit.rows_filtered, unit.text_hash, pg_catalog.clock_timestamp()
FROM fence, unnest($2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
                   $8::bigint[], $9::text[])
            AS unit (slice, rows_loaded, rows_rejected, rows_skipped, text_bytes, values_ignored, rows_filtered,
                     text_hash)
