-- How many locks all sessions together can hold for sure.
SELECT pg_catalog.current_setting('max_locks_per_transaction')::bigint
       * (pg_catalog.current_setting('max_connections')::bigint + pg_catalog.current_setting('max_prepared_transactions')::bigint)
