SELECT result FROM target.headrace.task WHERE run_id = $run_id AND task = $task
