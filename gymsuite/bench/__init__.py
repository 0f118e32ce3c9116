"""A fixed workload for sandboxes, measured so that machines and providers can be compared."""
