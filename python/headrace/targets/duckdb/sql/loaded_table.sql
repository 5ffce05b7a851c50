SELECT any_value("schema"), any_value("table"),
       EXISTS (FROM target.headrace.commit WHERE run_id = $run_id AND task = $task AND slice = 0)
FROM target.headrace.slice WHERE run_id = $run_id AND task = $task HAVING count(*) > 0
