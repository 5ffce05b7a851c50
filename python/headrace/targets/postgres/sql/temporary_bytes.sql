-- Bytes that the sessions of this database have written into temporary files, since the statistics began.
SELECT temp_bytes FROM pg_catalog.pg_stat_database WHERE datname = pg_catalog.current_database()
