UPDATE target.headrace.task SET result = $result WHERE run_id = $run_id AND task = $task
