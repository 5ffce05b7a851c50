-- Statements that give table $2 (quoted name) the CHECK constraints of table $1 without looking at its rows.
SELECT pg_catalog.format('ALTER TABLE %s ADD CONSTRAINT %I %s%s', $2::text, conname, definition.text,
              CASE WHEN definition.text !~ ' NOT (VALID|ENFORCED)$' THEN ' NOT VALID' END)
FROM pg_catalog.pg_constraint CROSS JOIN LATERAL (SELECT pg_catalog.pg_get_constraintdef(oid) AS text) AS definition
WHERE conrelid = $1::oid AND contype = 'c'
UNION ALL
SELECT pg_catalog.format('COMMENT ON CONSTRAINT %I ON %s IS %L', conname, $2::text, pg_catalog.obj_description(oid, 'pg_constraint'))
FROM pg_catalog.pg_constraint
WHERE conrelid = $1::oid AND contype = 'c' AND pg_catalog.obj_description(oid, 'pg_constraint') IS NOT NULL
