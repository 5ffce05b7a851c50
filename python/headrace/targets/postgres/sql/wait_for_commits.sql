-- Units behind the fence hold this row until their commit has ended: also those whose client is gone.
SELECT run_id FROM {schema}.run WHERE run_id = $1 FOR UPDATE
