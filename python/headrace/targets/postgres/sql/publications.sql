-- Publications that publish every table of schema $1, also those that are made later.
SELECT pubname FROM pg_catalog.pg_publication
WHERE puballtables OR oid IN (
  SELECT pnpubid FROM pg_catalog.pg_publication_namespace
  WHERE pnnspid = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1))
ORDER BY pubname
