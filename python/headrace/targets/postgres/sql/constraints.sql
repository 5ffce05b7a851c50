-- Constraints of table $1 that a copy of it has from the beginning: name, definition, comment. The rows of a copy are new, so
-- they are valid for all of them. NOT NULL has constraints from version 18 on.
SELECT conname, pg_catalog.regexp_replace(pg_catalog.pg_get_constraintdef(oid), ' NOT VALID$', ''),
       pg_catalog.obj_description(oid, 'pg_constraint'), contype = 'c' AS is_check
FROM pg_catalog.pg_constraint
WHERE conrelid = $1::oid AND contype IN ('c', 'n')
ORDER BY conname
