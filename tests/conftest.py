"""Leaves out what needs an environment of its own."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("trl") else ["trl"]  # `make test-trl` has it
