-- The places, from 1, of those of keys $1 that equal none of the values $2.
SELECT keys.place
FROM pg_catalog.unnest($1::text[]) WITH ORDINALITY AS keys (key, place)
WHERE NOT EXISTS (
  SELECT FROM pg_catalog.unnest($2::text[]) AS listed (value)
  WHERE keys.key::{type} {operator} listed.value::{type} {collation}
)
ORDER BY keys.place
