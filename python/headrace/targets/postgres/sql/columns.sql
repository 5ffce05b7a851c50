-- Columns of table $1 in table order. Domains are followed to their base type: its receive function and modifier say
-- what a column can hold. A domain can add NOT NULL and a default. `compares`: what compares its texts otherwise than by
-- their bytes.
WITH RECURSIVE base AS (
  SELECT a.attnum, a.atttypid AS type, a.atttypmod AS modifier, a.attnotnull AS not_null, a.atthasdef AS has_default
  FROM pg_catalog.pg_attribute AS a
  WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT base.attnum, t.typbasetype, CASE WHEN base.modifier = -1 THEN t.typtypmod ELSE base.modifier END,
         base.not_null OR t.typnotnull, base.has_default OR t.typdefault IS NOT NULL
  FROM base JOIN pg_catalog.pg_type AS t ON t.oid = base.type
  WHERE t.typtype = 'd'
)
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), p.proname, base.modifier, NOT base.not_null AS nullable,
       base.has_default AND a.attgenerated = '' AS has_default, a.attgenerated <> '' AS generated,
       a.attidentity <> '' AS identity,
       CASE WHEN p.proname = 'citextrecv' THEN 'type citext'
            WHEN NOT c.collisdeterministic THEN pg_catalog.concat('the collation ', c.collname) END AS compares
FROM base
JOIN pg_catalog.pg_type AS t ON t.oid = base.type AND t.typtype <> 'd'
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = $1::oid AND a.attnum = base.attnum
LEFT JOIN pg_catalog.pg_proc AS p ON p.oid = t.typreceive
LEFT JOIN pg_catalog.pg_collation AS c ON c.oid = a.attcollation
ORDER BY a.attnum
