SELECT pg_catalog.count(pg_catalog.set_config(known.name, known.setting, false))
FROM unnest($1::text[], $2::text[]) AS known (name, setting)
