"""What holds for all tests: which are left out, and that Ctrl-C works."""

import importlib.util
import signal

collect_ignore = [] if importlib.util.find_spec("trl") else ["trl"]  # `make test-trl` has it

# Whoever starts the tests in the background may ignore Ctrl-C, and processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
