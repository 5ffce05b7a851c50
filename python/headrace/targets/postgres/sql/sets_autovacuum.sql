SELECT true FROM pg_catalog.pg_class
WHERE oid = $1::oid AND EXISTS (
  SELECT FROM pg_catalog.pg_options_to_table(reloptions) WHERE option_name = 'autovacuum_enabled')
