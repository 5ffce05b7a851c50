-- Settings about which nobody has decided: neither options of the session, nor user, database or server.
SELECT name FROM pg_catalog.pg_settings WHERE name = ANY ($1::text[]) AND source = 'default' ORDER BY name
