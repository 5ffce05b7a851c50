-- Bytes that one operator may take, and what the server may be thought to have: all that it says of its memory.
SELECT (pg_catalog.pg_size_bytes(pg_catalog.current_setting('work_mem'))
        * pg_catalog.current_setting('hash_mem_multiplier')::numeric)::bigint,
       pg_catalog.pg_size_bytes(pg_catalog.current_setting('effective_cache_size'))
