-- Other tables with a foreign key to table $1, also as a partition of the table that is meant. One that a partition of the
-- other table has inherited is not listed again.
SELECT DISTINCT k.conrelid::regclass::text AS name
FROM pg_catalog.pg_constraint AS k
WHERE k.contype = 'f' AND k.confrelid = $1::oid AND k.conrelid <> $1::oid
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint AS above
                  WHERE above.oid = k.conparentid AND above.confrelid = k.confrelid)
ORDER BY name
