SELECT true FROM {schema}.run WHERE run_id = $1 AND attempt = $2::int AND status = 'running'
