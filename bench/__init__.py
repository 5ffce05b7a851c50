"""Headrace beside its peers: the same files, the same cores, slopes and ratios. METHOD.md says how and why."""
