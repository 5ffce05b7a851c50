UPDATE {schema}.run SET status = 'abandoned' WHERE run_id = ANY ($1::text[]) AND status <> 'success'
