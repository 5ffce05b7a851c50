-- Everything that hangs on table $1 and would be lost if another table took its place: whatever the catalogs name that is
-- not on the list of what a rename carries over (indexes, own constraints other than foreign keys, defaults, owned
-- sequences, grants, comments on table, columns and checks, storage parameters), nor what a partition has from its table.
WITH own AS (
  SELECT * FROM pg_catalog.pg_class WHERE oid = $1::oid
), own_type AS (
  SELECT t.oid FROM pg_catalog.pg_type AS t, own
  WHERE t.oid = own.reltype OR t.oid = (SELECT typarray FROM pg_catalog.pg_type WHERE oid = own.reltype)
), own_sequence AS (
  SELECT s.oid, d.deptype, s.relacl, s.relname
  FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'
  WHERE d.classid = 'pg_catalog.pg_class'::regclass::oid AND d.refclassid = 'pg_catalog.pg_class'::regclass::oid AND d.refobjid = $1::oid
    AND d.deptype IN ('a', 'i')
), carried AS (
  SELECT 'pg_catalog.pg_type'::regclass::oid AS classid, oid AS objid FROM own_type
  UNION ALL
  SELECT 'pg_catalog.pg_attrdef'::regclass::oid, oid FROM pg_catalog.pg_attrdef WHERE adrelid = $1::oid
  UNION ALL
  SELECT 'pg_catalog.pg_constraint'::regclass::oid, oid FROM pg_catalog.pg_constraint
  WHERE conrelid = $1::oid AND contype IN ('p', 'u', 'x', 'c', 'n')
    AND (conislocal AND coninhcount = 0 OR (SELECT relispartition FROM own))
  UNION ALL
  -- They come again with ATTACH.
  SELECT 'pg_catalog.pg_constraint'::regclass::oid, oid FROM pg_catalog.pg_constraint
  WHERE conrelid = $1::oid AND contype = 'f' AND conparentid <> 0
  UNION ALL
  SELECT 'pg_catalog.pg_trigger'::regclass::oid, oid FROM pg_catalog.pg_trigger WHERE tgrelid = $1::oid AND tgparentid <> 0
  UNION ALL
  SELECT 'pg_catalog.pg_class'::regclass::oid, indexrelid FROM pg_catalog.pg_index WHERE indrelid = $1::oid
  UNION ALL
  SELECT 'pg_catalog.pg_class'::regclass::oid, oid FROM own_sequence
  UNION ALL
  SELECT 'pg_catalog.pg_class'::regclass::oid, pg_catalog.unnest(ARRAY[oid, reltoastrelid]) FROM own
), hanging AS (
  SELECT DISTINCT d.classid, d.objid, d.objsubid
  FROM pg_catalog.pg_depend AS d
  WHERE (d.refclassid = 'pg_catalog.pg_class'::regclass::oid AND d.refobjid = $1::oid)
     OR (d.refclassid = 'pg_catalog.pg_type'::regclass::oid AND d.refobjid IN (SELECT oid FROM own_type))
     -- An identity's sequence is replaced by another one.
     OR (d.refclassid = 'pg_catalog.pg_class'::regclass::oid AND d.refobjid IN (SELECT oid FROM own_sequence WHERE deptype = 'i'))
), unknown AS (
  SELECT h.* FROM hanging AS h
  WHERE NOT EXISTS (SELECT FROM carried AS c WHERE c.classid = h.classid AND c.objid = h.objid)
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint AS k
                    WHERE h.classid = 'pg_catalog.pg_constraint'::regclass::oid AND k.oid = h.objid
                      AND k.contype = 'f' AND k.conrelid <> $1::oid)
)
SELECT DISTINCT coalesce(
         CASE h.classid
           WHEN 'pg_catalog.pg_rewrite'::regclass::oid THEN (
             SELECT CASE v.relkind WHEN 'v' THEN 'view ' WHEN 'm' THEN 'materialized view ' ELSE 'a rule on ' END
                    || v.oid::regclass::text
             FROM pg_catalog.pg_rewrite AS r JOIN pg_catalog.pg_class AS v ON v.oid = r.ev_class WHERE r.oid = h.objid)
           WHEN 'pg_catalog.pg_trigger'::regclass::oid THEN (SELECT 'trigger ' || pg_catalog.quote_ident(tgname) FROM pg_catalog.pg_trigger
                                             WHERE oid = h.objid)
           WHEN 'pg_catalog.pg_constraint'::regclass::oid THEN (
             SELECT CASE k.contype WHEN 'f' THEN 'foreign key ' ELSE 'constraint ' END || pg_catalog.quote_ident(conname)
             FROM pg_catalog.pg_constraint AS k WHERE k.oid = h.objid)
         END,
         pg_catalog.pg_describe_object(h.classid, h.objid, h.objsubid)) AS name
FROM unknown AS h
UNION
SELECT 'the extension ' || pg_catalog.quote_ident(e.extname)
FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid
WHERE d.classid = 'pg_catalog.pg_class'::regclass::oid AND d.objid = $1::oid AND d.refclassid = 'pg_catalog.pg_extension'::regclass::oid
UNION
SELECT 'inheritance from ' || inhparent::regclass::text FROM pg_catalog.pg_inherits WHERE inhrelid = $1::oid
UNION
SELECT CASE
         WHEN relpersistence <> 'p' THEN 'its being unlogged or temporary'
         WHEN reloftype <> 0 THEN 'its being a table of a type'
         WHEN relrowsecurity OR relforcerowsecurity THEN 'row security'
         WHEN relreplident <> 'd' THEN 'its replica identity'
       END
FROM own
WHERE relpersistence <> 'p' OR reloftype <> 0 OR relrowsecurity OR relforcerowsecurity OR relreplident <> 'd'
UNION
SELECT 'the storage parameters of its TOAST table' FROM own JOIN pg_catalog.pg_class AS t ON t.oid = own.reltoastrelid
WHERE t.reloptions IS NOT NULL
UNION
SELECT 'its owner ' || pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(relowner)) || ', who is somebody else' FROM own
WHERE NOT pg_catalog.pg_has_role(relowner, 'USAGE')
UNION
SELECT 'its owner ' || pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(relowner)) || ', to whom a new table cannot be given'
FROM own
WHERE relowner <> (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user)
  AND pg_catalog.pg_has_role(relowner, 'USAGE')
  AND NOT (pg_catalog.pg_has_role(relowner, CASE WHEN pg_catalog.current_setting('server_version_num')::integer >= 160000
                                       THEN 'SET' ELSE 'MEMBER' END)
           AND pg_catalog.has_schema_privilege(relowner, relnamespace, 'CREATE'))
UNION
SELECT 'schema ' || pg_catalog.quote_ident(nspname) || ', where the user may not create tables'
FROM own JOIN pg_catalog.pg_namespace AS n ON n.oid = own.relnamespace WHERE NOT pg_catalog.has_schema_privilege(n.oid, 'CREATE')
UNION
SELECT 'grants by somebody else than its owner' FROM own
WHERE EXISTS (SELECT FROM pg_catalog.aclexplode(own.relacl) AS a WHERE a.grantor <> own.relowner)
   OR EXISTS (SELECT FROM pg_catalog.pg_attribute AS c, pg_catalog.aclexplode(c.attacl) AS a
              WHERE c.attrelid = own.oid AND a.grantor <> own.relowner)
UNION
SELECT 'statistics or other settings of column ' || pg_catalog.quote_ident(attname) FROM pg_catalog.pg_attribute
WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped AND (attoptions IS NOT NULL OR coalesce(attstattarget, -1) >= 0)
UNION
SELECT 'security label' FROM pg_catalog.pg_seclabel WHERE classoid = 'pg_catalog.pg_class'::regclass::oid AND objoid = $1::oid
UNION
SELECT 'a subscription' FROM pg_catalog.pg_subscription_rel WHERE srrelid = $1::oid
UNION
-- Indexes are built anew from their definitions, which do not say everything.
SELECT 'settings of index ' || pg_catalog.quote_ident(i.relname)
FROM pg_catalog.pg_index AS x
JOIN pg_catalog.pg_class AS i ON i.oid = x.indexrelid
LEFT JOIN pg_catalog.pg_constraint AS k ON k.conindid = i.oid AND k.conrelid = x.indrelid AND k.contype IN ('p', 'u', 'x')
WHERE x.indrelid = $1::oid
  AND (x.indisclustered OR x.indisreplident OR NOT x.indisvalid OR i.reltablespace <> 0
       OR (k.oid IS NOT NULL AND i.reloptions IS NOT NULL)
       OR EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = i.oid AND coalesce(a.attstattarget, -1) >= 0)
       OR pg_catalog.obj_description(i.oid, 'pg_class') IS NOT NULL
       OR pg_catalog.obj_description(k.oid, 'pg_constraint') IS NOT NULL)
UNION
SELECT 'settings of the sequence ' || pg_catalog.quote_ident(relname) FROM own_sequence
WHERE deptype = 'i' AND (relacl IS NOT NULL OR pg_catalog.obj_description(oid, 'pg_class') IS NOT NULL)
ORDER BY name
