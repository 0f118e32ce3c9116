"""Which sandbox providers this machine has, and what to do where one is missing."""

import asyncio
import os
import tempfile
from functools import cache
from pathlib import Path

import pytest

from gymsuite import SandboxError, open_provider


def missing(what: str, reason: str) -> None:
    """Skip for want of a provider, but never where the tests are the gate."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is needed here: {reason}")
    pytest.skip(f"{what}: {reason}")


@cache
def _complaint(provider: str) -> str:
    """Why a provider does not work here, or ""."""

    async def try_it() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with open_provider(provider, image_roots=(), cache=Path(folder)):
                pass

    try:
        asyncio.run(try_it())
    except SandboxError as error:
        return str(error)
    return ""


def require(provider: str) -> None:
    """Skip, or fail under CI, unless the provider works here."""
    if complaint := _complaint(provider):
        missing(f"the {provider} provider", complaint)
