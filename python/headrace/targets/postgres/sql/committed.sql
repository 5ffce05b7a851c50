SELECT pg_catalog.count(*), coalesce(pg_catalog.sum(rows_loaded), 0) FROM {schema}.commit WHERE run_id = $1 AND task = $2 AND slice > 0
