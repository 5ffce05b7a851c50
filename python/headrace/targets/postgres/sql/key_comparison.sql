-- What compares keys of table $1, if that is not what the server has for everybody: an operator class of somebody's own, or a
-- collation by which different texts are equal.
SELECT pg_catalog.concat_ws(', ',
         CASE WHEN o.opcnamespace <> 'pg_catalog'::regnamespace THEN pg_catalog.format('operator class %s', o.opcname) END,
         CASE WHEN NOT c.collisdeterministic THEN pg_catalog.format('collation %s', c.collname) END) AS own
FROM pg_catalog.pg_partitioned_table AS p
JOIN pg_catalog.pg_opclass AS o ON o.oid = p.partclass[0]
LEFT JOIN pg_catalog.pg_collation AS c ON c.oid = p.partcollation[0]
WHERE p.partrelid = $1::oid
