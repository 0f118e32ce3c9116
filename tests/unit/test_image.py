import platform

import pytest

from gymsuite import SandboxError
from gymsuite.sandbox.image import Image


def image_for(architecture: str) -> Image:
    return Image(name="x", digest="0", base="debian", layers=(), architecture=architecture)


def test_an_image_of_another_architecture_is_refused_with_both_names() -> None:
    with pytest.raises(SandboxError, match=f"for pdp11, .* is {platform.machine()}") as error:
        image_for("pdp11").check_architecture()
    assert not error.value.retryable


def test_an_image_of_this_machine_is_taken() -> None:
    image = image_for(platform.machine())
    image.check_architecture()
    assert image.architecture == platform.machine()
