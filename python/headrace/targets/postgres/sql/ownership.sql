-- Of table $1 if it belongs to another role: whether the user may give tables to that one, and it may have them there.
SELECT pg_catalog.pg_has_role(relowner, CASE WHEN pg_catalog.current_setting('server_version_num')::integer >= 160000
                                       THEN 'SET' ELSE 'MEMBER' END) AS may_give,
       pg_catalog.has_schema_privilege(relowner, relnamespace, 'CREATE') AS may_have
FROM pg_catalog.pg_class
WHERE oid = $1::oid AND relowner <> (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user)
