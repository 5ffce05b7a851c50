-- Statements that give table $2 (quoted name) the owner, grants and comment of table $1. $3: oid of that table.
WITH old AS (
  SELECT *, coalesce(relacl, pg_catalog.acldefault('r', relowner)) AS acl FROM pg_catalog.pg_class WHERE oid = $1::oid
), new AS (
  SELECT *, coalesce(relacl, pg_catalog.acldefault('r', relowner)) AS acl FROM pg_catalog.pg_class WHERE oid = $3::oid
), statements AS (
  SELECT 1 AS step, pg_catalog.format('ALTER TABLE %s OWNER TO %I', $2::text, pg_catalog.pg_get_userbyid(old.relowner)) AS text
  FROM old, new WHERE old.relowner <> new.relowner
  UNION ALL
  SELECT DISTINCT 2, pg_catalog.format('REVOKE ALL ON TABLE %s FROM %s', $2::text, grantee.name)
  FROM old, new, pg_catalog.aclexplode(pg_catalog.array_cat(new.acl, old.acl)) AS a,
       LATERAL (SELECT coalesce((SELECT pg_catalog.quote_ident(rolname) FROM pg_catalog.pg_roles WHERE oid = a.grantee), 'PUBLIC') AS name
       ) AS grantee
  WHERE old.relacl::text IS DISTINCT FROM new.relacl::text
  UNION ALL
  SELECT 3, pg_catalog.format('GRANT %s ON TABLE %s TO %s%s', pg_catalog.string_agg(a.privilege_type, ', '), $2::text,
                   coalesce((SELECT pg_catalog.quote_ident(rolname) FROM pg_catalog.pg_roles WHERE oid = a.grantee), 'PUBLIC'),
                   CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END)
  FROM old, new, pg_catalog.aclexplode(old.acl) AS a
  WHERE old.relacl::text IS DISTINCT FROM new.relacl::text
  GROUP BY a.grantee, a.is_grantable
  UNION ALL
  SELECT 4, pg_catalog.format('GRANT %s (%I) ON TABLE %s TO %s%s', a.privilege_type, c.attname, $2::text,
                   coalesce((SELECT pg_catalog.quote_ident(rolname) FROM pg_catalog.pg_roles WHERE oid = a.grantee), 'PUBLIC'),
                   CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END)
  FROM old, pg_catalog.pg_attribute AS c, pg_catalog.aclexplode(c.attacl) AS a
  WHERE c.attrelid = old.oid AND NOT c.attisdropped
  UNION ALL
  SELECT 5, pg_catalog.format('COMMENT ON TABLE %s IS %L', $2::text, pg_catalog.obj_description(old.oid, 'pg_class')) FROM old
  WHERE pg_catalog.obj_description(old.oid, 'pg_class') IS NOT NULL
)
SELECT text FROM statements ORDER BY step, text
