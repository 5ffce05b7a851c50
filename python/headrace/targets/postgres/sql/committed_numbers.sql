SELECT slice FROM {schema}.commit WHERE run_id = $1 AND task = $2 ORDER BY slice
