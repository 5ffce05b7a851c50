-- How table $1 is partitioned, with operator classes and collations, as it stands behind PARTITION BY.
SELECT pg_catalog.pg_get_partkeydef($1::oid)
