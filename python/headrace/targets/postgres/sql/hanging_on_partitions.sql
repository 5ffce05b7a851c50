-- What hangs on the partitions of table $1, so that they cannot be dropped: views and the like, of any level; and the oid of
-- the partition of the first level, NULL if it hangs on all of them.
WITH tree AS (
  SELECT i.inhrelid AS part, member.relid
  FROM pg_catalog.pg_inherits AS i CROSS JOIN LATERAL pg_catalog.pg_partition_tree(i.inhrelid) AS member
  WHERE i.inhparent = $1::oid
)
SELECT DISTINCT coalesce(
         (SELECT CASE v.relkind WHEN 'v' THEN 'view ' WHEN 'm' THEN 'materialized view ' END || v.oid::regclass::text
          FROM pg_catalog.pg_rewrite AS r JOIN pg_catalog.pg_class AS v ON v.oid = r.ev_class
          WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass::oid AND r.oid = d.objid),
         pg_catalog.pg_describe_object(d.classid, d.objid, 0)) || ' on ' || tree.relid::regclass::text AS name, tree.part
FROM tree
JOIN pg_catalog.pg_depend AS d ON d.refclassid = 'pg_catalog.pg_class'::regclass::oid AND d.refobjid = tree.relid AND d.deptype = 'n'
WHERE d.classid IN ('pg_catalog.pg_rewrite'::regclass::oid, 'pg_catalog.pg_proc'::regclass::oid, 'pg_catalog.pg_policy'::regclass::oid)
UNION
-- A foreign key to a partition alone; one to the whole table is listed elsewhere.
SELECT 'foreign key of ' || k.conrelid::regclass::text || ' on ' || k.confrelid::regclass::text, tree.part
FROM pg_catalog.pg_constraint AS k
JOIN tree ON tree.relid = k.confrelid
WHERE k.contype = 'f' AND k.conparentid = 0
UNION
-- The server drops no partition to whose rows those of its own table may refer.
SELECT 'foreign key ' || pg_catalog.quote_ident(k.conname::text) || ' of the table to itself', NULL
FROM pg_catalog.pg_constraint AS k
WHERE k.contype = 'f' AND k.conrelid = $1::oid AND k.confrelid = $1::oid AND k.conparentid = 0
UNION
-- What belongs to a partition alone, and would be lost with it without a word.
SELECT 'trigger ' || pg_catalog.quote_ident(t.tgname::text) || ' on ' || tree.relid::regclass::text, tree.part
FROM tree JOIN pg_catalog.pg_trigger AS t ON t.tgrelid = tree.relid
WHERE NOT t.tgisinternal AND t.tgparentid = 0
UNION
SELECT 'policy ' || pg_catalog.quote_ident(p.polname::text) || ' on ' || tree.relid::regclass::text, tree.part
FROM tree JOIN pg_catalog.pg_policy AS p ON p.polrelid = tree.relid
UNION
SELECT 'publication ' || pg_catalog.quote_ident(p.pubname::text) || ' of ' || tree.relid::regclass::text, tree.part
FROM tree
JOIN pg_catalog.pg_publication_rel AS r ON r.prrelid = tree.relid
JOIN pg_catalog.pg_publication AS p ON p.oid = r.prpubid
UNION
SELECT 'foreign table ' || tree.relid::regclass::text, tree.part
FROM tree JOIN pg_catalog.pg_class AS c ON c.oid = tree.relid
WHERE c.relkind = 'f'
ORDER BY name, part
