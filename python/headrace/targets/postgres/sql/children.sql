-- Tables that inherit from table $1, of any level: whoever empties it empties them too.
WITH RECURSIVE below AS (
  SELECT inhrelid FROM pg_catalog.pg_inherits WHERE inhparent = $1::oid
  UNION
  SELECT i.inhrelid FROM below JOIN pg_catalog.pg_inherits AS i ON i.inhparent = below.inhrelid
)
SELECT inhrelid::regclass::text AS name FROM below ORDER BY name
