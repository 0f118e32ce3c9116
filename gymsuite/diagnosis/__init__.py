"""What this machine can do for sandboxes, found out and proved."""
