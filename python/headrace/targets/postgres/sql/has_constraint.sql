SELECT true FROM pg_catalog.pg_constraint WHERE conrelid = pg_catalog.to_regclass($1) AND conname = $2
