INSERT INTO load_failures VALUES ($failed_task, $sales_file, $problem);
