SELECT true FROM {schema}.commit WHERE run_id = $1 AND task = $2 AND slice = 0
