-- Of types $1 with modifiers $2, as the columns of a result have them: the receive function whose counterpart sends the
-- values, the name, and whether it has collations.
SELECT CASE WHEN p.proname LIKE '%send' THEN pg_catalog.concat(pg_catalog.left(p.proname::text, -4), 'recv') END,
       pg_catalog.format_type(listed.type, listed.modifier), t.typcollation <> 0
FROM ROWS FROM (pg_catalog.unnest($1::oid[]), pg_catalog.unnest($2::int4[])) WITH ORDINALITY AS listed (type, modifier, place)
LEFT JOIN pg_catalog.pg_type AS t ON t.oid = listed.type
LEFT JOIN pg_catalog.pg_proc AS p ON p.oid = t.typsend
ORDER BY listed.place
