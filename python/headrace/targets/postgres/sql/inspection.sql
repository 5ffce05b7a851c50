-- The server as a session of this user finds it. $1: schema of the ledger, NULL without one.
SELECT pg_catalog.current_setting('server_version') AS version,
       (SELECT pg_catalog.pg_encoding_to_char(encoding) FROM pg_catalog.pg_database
        WHERE datname = pg_catalog.current_database()) AS encoding,
       pg_catalog.pg_is_in_recovery() AS standby,
       pg_catalog.current_database() AS database,
       current_user AS "user",
       EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1::text) AS has_ledger_schema,
       pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE') AS may_create_schema,
       (SELECT pg_catalog.has_schema_privilege(oid, 'USAGE') FROM pg_catalog.pg_namespace
        WHERE nspname = $1::text) AS may_use_ledger_schema,
       (SELECT pg_catalog.has_schema_privilege(oid, 'CREATE') FROM pg_catalog.pg_namespace
        WHERE nspname = $1::text) AS may_create_in_ledger_schema
