-- What hangs on the partitions of table $1, so that they cannot be dropped: views and the like, of any level.
SELECT DISTINCT pg_catalog.pg_describe_object(d.classid, d.objid, 0) || ' on ' || tree.relid::regclass::text AS name
FROM pg_catalog.pg_partition_tree($1::oid) AS tree
JOIN pg_catalog.pg_depend AS d ON d.refclassid = 'pg_catalog.pg_class'::regclass::oid AND d.refobjid = tree.relid AND d.deptype = 'n'
WHERE tree.level > 0 AND d.classid IN ('pg_catalog.pg_rewrite'::regclass::oid, 'pg_catalog.pg_proc'::regclass::oid, 'pg_catalog.pg_policy'::regclass::oid)
UNION
-- A foreign key to a partition alone; one to the whole table is listed elsewhere.
SELECT 'foreign key of ' || k.conrelid::regclass::text || ' on ' || k.confrelid::regclass::text
FROM pg_catalog.pg_constraint AS k
JOIN pg_catalog.pg_partition_tree($1::oid) AS tree ON tree.relid = k.confrelid AND tree.level > 0
WHERE k.contype = 'f' AND k.conparentid = 0
UNION
-- The server drops no partition to whose rows those of its own table may refer.
SELECT 'foreign key ' || pg_catalog.quote_ident(k.conname::text) || ' of the table to itself'
FROM pg_catalog.pg_constraint AS k
WHERE k.contype = 'f' AND k.conrelid = $1::oid AND k.confrelid = $1::oid AND k.conparentid = 0
UNION
-- What belongs to a partition alone, and would be lost with it without a word.
SELECT 'trigger ' || pg_catalog.quote_ident(t.tgname::text) || ' on ' || tree.relid::regclass::text
FROM pg_catalog.pg_partition_tree($1::oid) AS tree JOIN pg_catalog.pg_trigger AS t ON t.tgrelid = tree.relid
WHERE tree.level > 0 AND NOT t.tgisinternal AND t.tgparentid = 0
UNION
SELECT 'policy ' || pg_catalog.quote_ident(p.polname::text) || ' on ' || tree.relid::regclass::text
FROM pg_catalog.pg_partition_tree($1::oid) AS tree JOIN pg_catalog.pg_policy AS p ON p.polrelid = tree.relid
WHERE tree.level > 0
UNION
SELECT 'publication ' || pg_catalog.quote_ident(p.pubname::text) || ' of ' || tree.relid::regclass::text
FROM pg_catalog.pg_partition_tree($1::oid) AS tree
JOIN pg_catalog.pg_publication_rel AS r ON r.prrelid = tree.relid
JOIN pg_catalog.pg_publication AS p ON p.oid = r.prpubid
WHERE tree.level > 0
UNION
SELECT 'foreign table ' || tree.relid::regclass::text
FROM pg_catalog.pg_partition_tree($1::oid) AS tree JOIN pg_catalog.pg_class AS c ON c.oid = tree.relid
WHERE tree.level > 0 AND c.relkind = 'f'
ORDER BY name
