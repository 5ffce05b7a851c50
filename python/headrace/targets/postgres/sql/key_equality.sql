-- By what the key of table $1 is compared: the type of the operator class, its equality, and the key's collation.
SELECT pg_catalog.format_type(class.opcintype, NULL),
       pg_catalog.format('OPERATOR(%I.%s)', operators.nspname, operator.oprname),
       CASE WHEN own.oid IS NOT NULL THEN pg_catalog.format('COLLATE %I.%I', collations.nspname, own.collname) END AS collation
FROM pg_catalog.pg_partitioned_table AS p
JOIN pg_catalog.pg_opclass AS class ON class.oid = p.partclass[0]
JOIN pg_catalog.pg_type AS type ON type.oid = class.opcintype AND type.typtype <> 'p'
JOIN pg_catalog.pg_amop AS member ON member.amopfamily = class.opcfamily AND member.amopstrategy = 3
  AND member.amoplefttype = class.opcintype AND member.amoprighttype = class.opcintype
JOIN pg_catalog.pg_operator AS operator ON operator.oid = member.amopopr
JOIN pg_catalog.pg_namespace AS operators ON operators.oid = operator.oprnamespace
LEFT JOIN pg_catalog.pg_collation AS own ON own.oid = p.partcollation[0]
LEFT JOIN pg_catalog.pg_namespace AS collations ON collations.oid = own.collnamespace
WHERE p.partrelid = $1::oid
