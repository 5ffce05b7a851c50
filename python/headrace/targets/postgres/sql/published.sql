-- Publications of table $1: by its name, with its schema, or with all tables.
SELECT pubname FROM pg_catalog.pg_publication
WHERE puballtables OR oid IN (
  SELECT prpubid FROM pg_catalog.pg_publication_rel WHERE prrelid = $1::oid
  UNION ALL
  SELECT pnpubid FROM pg_catalog.pg_publication_namespace
  WHERE pnnspid = (SELECT relnamespace FROM pg_catalog.pg_class WHERE oid = $1::oid))
ORDER BY pubname
