INSERT INTO target.headrace.run
  (run_id, package, package_hash, headrace_version, host, process_id, attempt, status, started_at, of_run)
VALUES ($run_id, $package, $package_hash, $headrace_version, $host, $process_id, 1, 'running', $started_at, $of_run)
