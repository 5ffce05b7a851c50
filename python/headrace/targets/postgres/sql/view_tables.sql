-- Tables that view $1 reads, and whether all of them are of the kind that a load with `view` makes: plain tables of the
-- same schema, named like the view with a number behind.
WITH shown AS (
  SELECT DISTINCT t.oid, t.relname, t.relkind, t.relnamespace
  FROM pg_catalog.pg_rewrite AS r
  JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_rewrite'::regclass::oid AND d.objid = r.oid
  JOIN pg_catalog.pg_class AS t ON t.oid = d.refobjid AND t.oid <> r.ev_class
  WHERE r.ev_class = $1::oid AND d.refclassid = 'pg_catalog.pg_class'::regclass::oid
)
SELECT shown.relname FROM shown
WHERE (SELECT pg_catalog.bool_and(other.relkind = 'r' AND other.relnamespace = v.relnamespace
                       AND pg_catalog.starts_with(other.relname::text, v.relname::text || '_')
                       AND pg_catalog.substr(other.relname::text, pg_catalog.length(v.relname::text) + 2) ~ '^[0-9]+$')
       FROM shown AS other, pg_catalog.pg_class AS v WHERE v.oid = $1::oid)
ORDER BY pg_catalog.length(shown.relname::text), shown.relname
