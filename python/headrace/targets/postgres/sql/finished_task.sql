SELECT result FROM {schema}.task WHERE run_id = $1 AND task = $2
