SELECT true FROM pg_catalog.pg_attribute
WHERE attrelid = pg_catalog.to_regclass($1)::pg_catalog.oid AND attname = $2 AND NOT attisdropped
