-- Triggers that fire for inserted rows: bit 2 (4) of tgtype is INSERT.
SELECT tgname, tgenabled FROM pg_catalog.pg_trigger
WHERE tgrelid = $1::oid AND NOT tgisinternal AND tgenabled <> 'D' AND tgtype::integer & 4 <> 0
ORDER BY tgname
