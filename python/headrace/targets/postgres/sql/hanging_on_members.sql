-- What hangs on the tables that view $1 reads, other than the view, so that they cannot be dropped.
WITH member AS (
  SELECT DISTINCT d.refobjid AS oid
  FROM pg_catalog.pg_rewrite AS r JOIN pg_catalog.pg_depend AS d ON d.objid = r.oid
  WHERE r.ev_class = $1::oid AND d.refobjid <> $1::oid
    AND d.classid = 'pg_catalog.pg_rewrite'::regclass::oid AND d.refclassid = 'pg_catalog.pg_class'::regclass::oid
)
SELECT coalesce((SELECT 'view ' || r.ev_class::regclass::text FROM pg_catalog.pg_rewrite AS r
                 WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass::oid AND r.oid = d.objid),
                pg_catalog.pg_describe_object(d.classid, d.objid, 0)) || ' on ' || member.oid::regclass::text AS name
FROM member
JOIN pg_catalog.pg_depend AS d ON d.refclassid = 'pg_catalog.pg_class'::regclass::oid AND d.refobjid = member.oid
                              AND d.deptype = 'n'
WHERE d.objid NOT IN (SELECT oid FROM pg_catalog.pg_rewrite WHERE ev_class IN (SELECT oid FROM member UNION SELECT $1::oid))
GROUP BY name
ORDER BY name
