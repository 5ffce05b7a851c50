-- Whether this very session holds an advisory lock of 64 bits.
SELECT true FROM pg_catalog.pg_locks
WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND pid = pg_catalog.pg_backend_pid()
  AND classid::bigint = ($1::bigint >> 32) & 4294967295 AND objid::bigint = $1::bigint & 4294967295
