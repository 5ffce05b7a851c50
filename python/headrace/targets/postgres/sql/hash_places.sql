-- The remainder of each of keys $3 in table $1, which is partitioned by hash of a column of type {type}; $2: the modulus.
SELECT place
FROM pg_catalog.unnest($3::text[]) WITH ORDINALITY AS probe (key, number)
CROSS JOIN LATERAL pg_catalog.generate_series(0, $2::integer - 1) AS place
WHERE pg_catalog.satisfies_hash_partition($1::oid, $2::integer, place, probe.key::{type})
ORDER BY probe.number
