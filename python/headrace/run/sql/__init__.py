"""SQL of tasks: scripts with the values of a moment, and what their results become."""
