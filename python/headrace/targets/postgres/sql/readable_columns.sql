-- Columns of table $1 that the user may read.
SELECT a.attname FROM pg_catalog.pg_attribute AS a
WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped
  AND pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT')
ORDER BY a.attnum
