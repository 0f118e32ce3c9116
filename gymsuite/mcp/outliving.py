"""Lets a server outlive its client's patience: clients kill a server seconds after leaving it."""

import os
import sys

from gymsuite.errors import UsageError


def outlive() -> None:
    """Go on in a process and a session of its own, while this one waits for it to be killed.

    What goes on sees the end of stdin when the client leaves, and then has the time to score the
    episode. Call it before there are threads or an event loop.
    """
    if sys.stdin.isatty():
        raise UsageError("stdin is a terminal: an MCP client is to start this command")
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        os._exit(code if code >= 0 else 128 - code)
    os.setsid()
