-- What keeps table $1 from becoming a partition, or would be surprised if it did.
SELECT 'its being a partition of ' || inhparent::regclass::text AS name
FROM pg_catalog.pg_inherits JOIN pg_catalog.pg_class AS c ON c.oid = inhrelid WHERE inhrelid = $1::oid AND c.relispartition
UNION
SELECT 'its inheriting from ' || inhparent::regclass::text
FROM pg_catalog.pg_inherits JOIN pg_catalog.pg_class AS c ON c.oid = inhrelid WHERE inhrelid = $1::oid AND NOT c.relispartition
UNION
SELECT 'table ' || inhrelid::regclass::text || ', which inherits from it' FROM pg_catalog.pg_inherits WHERE inhparent = $1::oid
UNION
SELECT CASE WHEN relpersistence = 'u' THEN 'its being unlogged' WHEN relpersistence = 't' THEN 'its being temporary'
            ELSE 'its being a table of a type' END
FROM pg_catalog.pg_class WHERE oid = $1::oid AND (relpersistence <> 'p' OR reloftype <> 0)
UNION
SELECT 'identity column ' || pg_catalog.quote_ident(attname) FROM pg_catalog.pg_attribute
WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped AND attidentity <> ''
UNION
SELECT 'rule ' || pg_catalog.quote_ident(rulename) FROM pg_catalog.pg_rewrite WHERE ev_class = $1::oid
UNION
SELECT CASE v.relkind WHEN 'v' THEN 'view ' WHEN 'm' THEN 'materialized view ' ELSE 'a rule on ' END || v.oid::regclass::text
FROM pg_catalog.pg_depend AS d
JOIN pg_catalog.pg_rewrite AS r ON r.oid = d.objid
JOIN pg_catalog.pg_class AS v ON v.oid = r.ev_class AND v.oid <> $1::oid
WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass::oid AND d.refclassid = 'pg_catalog.pg_class'::regclass::oid AND d.refobjid = $1::oid
UNION
SELECT 'foreign key of ' || conrelid::regclass::text FROM pg_catalog.pg_constraint
WHERE contype = 'f' AND confrelid = $1::oid AND conrelid <> $1::oid AND conparentid = 0
ORDER BY name
