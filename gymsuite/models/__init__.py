"""Models small enough to be served on any machine: where they come from, and their server."""
