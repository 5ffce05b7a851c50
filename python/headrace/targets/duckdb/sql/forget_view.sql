DELETE FROM target.headrace.divided_view WHERE lower(schema) = lower($schema) AND lower(view) = lower($table)
