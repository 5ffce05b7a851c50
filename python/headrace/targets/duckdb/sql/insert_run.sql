INSERT INTO target.headrace.run
VALUES ($run_id, $package, $package_hash, $headrace_version, $host, $process_id, 1, 'running', $started_at, NULL, NULL)
