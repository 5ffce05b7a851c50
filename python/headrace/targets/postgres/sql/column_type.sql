-- The type of column $2 of table $1, as SQL.
SELECT pg_catalog.format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute
WHERE attrelid = $1::oid AND attname = $2 AND NOT attisdropped
