-- CHECK constraints of table $1 and their definitions; NOT VALID stands at the end of one that was never checked.
SELECT conname, regexp_replace(pg_catalog.pg_get_constraintdef(oid), ' NOT VALID$', '') AS definition
FROM pg_catalog.pg_constraint WHERE conrelid = $1::oid AND contype = 'c' ORDER BY conname
