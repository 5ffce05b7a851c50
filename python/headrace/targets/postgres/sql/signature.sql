-- What must be the same in two tables before one may take the place of the other, in column order.
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attcollation, a.attnotnull, a.attidentity, a.attgenerated,
       pg_catalog.pg_get_expr(d.adbin, d.adrelid), a.attstorage, a.attcompression,
       pg_catalog.col_description(a.attrelid, a.attnum)
FROM pg_catalog.pg_attribute AS a
LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
