-- What a server must be for a load, and the process that serves this session.
SELECT pg_catalog.pg_backend_pid() AS process_id,
       pg_catalog.pg_is_in_recovery() AS standby,
       (SELECT pg_catalog.pg_encoding_to_char(encoding) FROM pg_catalog.pg_database
        WHERE datname = pg_catalog.current_database()) AS encoding
