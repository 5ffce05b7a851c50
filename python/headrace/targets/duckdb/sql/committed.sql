SELECT count(*), coalesce(sum(rows_loaded), 0)::BIGINT FROM target.headrace.commit
WHERE run_id = $run_id AND task = $task AND slice > 0
