-- Sessions of a run in this database, and whether we may end them.
SELECT pid,
       pg_has_role(current_user, usesysid, 'MEMBER') OR pg_has_role(current_user, 'pg_signal_backend', 'MEMBER') AS may_end
FROM pg_catalog.pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND starts_with(application_name, $1)
ORDER BY pid
