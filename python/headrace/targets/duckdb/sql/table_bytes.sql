-- What a table takes in the file: whole blocks, which its columns may share.
SELECT count(DISTINCT block) * (SELECT any_value(block_size) FROM pragma_database_size() WHERE database_name = 'target')
FROM (
  SELECT block_id AS block FROM pragma_storage_info($table) WHERE persistent AND block_id >= 0
  UNION ALL
  SELECT unnest(additional_block_ids) FROM pragma_storage_info($table) WHERE persistent
)
