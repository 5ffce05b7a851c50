-- Of collations $1, as the server names them: those that compare texts otherwise than by bytes.
SELECT CASE WHEN NOT c.collisdeterministic THEN pg_catalog.concat('the collation ', c.collname) END
FROM pg_catalog.unnest($1::text[]) WITH ORDINALITY AS listed (name, place)
LEFT JOIN pg_catalog.pg_collation AS c ON c.oid = listed.name::pg_catalog.regcollation::oid
ORDER BY listed.place
