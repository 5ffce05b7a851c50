-- How many locks all sessions together can hold for sure.
SELECT current_setting('max_locks_per_transaction')::bigint
       * (current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint)
