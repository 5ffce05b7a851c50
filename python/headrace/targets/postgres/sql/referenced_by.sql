-- Other tables with a foreign key to table $1.
SELECT DISTINCT k.conrelid::regclass::text AS name
FROM pg_catalog.pg_constraint AS k
WHERE k.contype = 'f' AND k.confrelid = $1::oid AND k.conrelid <> $1::oid AND k.conparentid = 0
ORDER BY name
