-- Slice 0 stands for the task itself: its commit row says that the rows are visible.
SELECT EXISTS (FROM target.headrace.slice WHERE run_id = $run_id AND task = $task),
       EXISTS (FROM target.headrace.commit WHERE run_id = $run_id AND task = $task AND slice = 0)
