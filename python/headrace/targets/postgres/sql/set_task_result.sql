UPDATE {schema}.task SET result = $3 WHERE run_id = $1 AND task = $2
