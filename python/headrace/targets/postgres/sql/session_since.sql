SELECT backend_start::text FROM pg_catalog.pg_stat_activity WHERE pid = $1::int
