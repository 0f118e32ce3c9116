"""The process that serves a model, and the only door to xllamacpp: `python -m` runs it.

It reads `ServerSettings` from the first line of stdin, writes its address to stdout, and ends when
stdin does: with the process that started it, whatever ended that one. A process of its own because
the server's destructor waits until every answer under way is written, minutes if need be.
"""

import os
import sys

import xllamacpp  # type: ignore[import-not-found,import-untyped,unused-ignore]  # it has no types

from gymsuite.models.settings import ServerSettings

_ERRORS_ONLY = 1
_PROMPT_CACHE_MEBIBYTES = 256
_NO_PAGE = "http://127.0.0.1"


def main() -> None:
    """Serve until stdin ends."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what native code prints is no address
    settings = ServerSettings.model_validate_json(sys.stdin.buffer.readline())
    server = xllamacpp.Server(_parameters(settings))
    os.write(answers, f"{server.listening_address}\n".encode())
    sys.stdin.buffer.read()
    os._exit(0)  # without the destructor


def _parameters(settings: ServerSettings) -> xllamacpp.CommonParams:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(settings.path)
    parameters.model_alias = {settings.name}
    parameters.hostnames = [settings.host]
    parameters.port = settings.port
    parameters.api_keys = [settings.api_key] if settings.api_key else []
    parameters.n_parallel = settings.slots
    parameters.n_ctx = settings.slots * settings.context  # it is shared out evenly
    parameters.n_predict = settings.longest_answer
    for pool in (parameters.cpuparams, parameters.cpuparams_batch):
        pool.n_threads = settings.threads
    parameters.use_jinja = True  # tools are part of the chat template
    parameters.warmup = False
    parameters.cache_ram_mib = _PROMPT_CACHE_MEBIBYTES  # 8 GiB unless said
    parameters.verbosity = _ERRORS_ONLY
    parameters.offline = True
    parameters.ui = False
    parameters.endpoint_slots = False  # they show what others asked
    parameters.cors_origins = _NO_PAGE  # pages in a browser must not use it; "*" unless said
    return parameters


if __name__ == "__main__":
    main()
