INSERT INTO target.headrace.task (run_id, task, committed_at) VALUES ($run_id, $task, $now)
