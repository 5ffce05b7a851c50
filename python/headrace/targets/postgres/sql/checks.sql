SELECT conname FROM pg_catalog.pg_constraint WHERE conrelid = $1::oid AND contype = 'c' ORDER BY conname
