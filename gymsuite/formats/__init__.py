"""Foreign task formats, one to a module."""
