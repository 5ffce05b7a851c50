-- What was set in this session. Those of the transaction itself belong to it.
SELECT name, setting FROM pg_catalog.pg_settings
WHERE source = 'session' AND name NOT LIKE 'transaction\_%' AND name NOT IN ('role', 'session_authorization')
