-- Settings by name ($1): as people write them, as a number of units, and when a new value takes effect.
SELECT name, pg_catalog.current_setting(name), setting, unit, context
FROM pg_catalog.pg_settings WHERE name = ANY ($1::text[])
