-- Statements that give new table $2 (quoted name) what ALTER DEFAULT PRIVILEGES says for schema $1: it was made in another.
SELECT pg_catalog.format('GRANT %s ON TABLE %s TO %s%s', pg_catalog.string_agg(a.privilege_type, ', '), $2::text,
              coalesce((SELECT pg_catalog.quote_ident(rolname) FROM pg_catalog.pg_roles WHERE oid = a.grantee), 'PUBLIC'),
              CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END) AS text
FROM pg_catalog.pg_default_acl AS d, pg_catalog.aclexplode(d.defaclacl) AS a
WHERE d.defaclnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1) AND d.defaclobjtype = 'r'
  AND d.defaclrole = (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user)
GROUP BY a.grantee, a.is_grantable
