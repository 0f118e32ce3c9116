"""The command line: the only reader of environment variables."""
