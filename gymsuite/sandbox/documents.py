"""The documents in an image archive, as far as a sandbox has use for them.

Sources: the OCI image specification 1.1 (image-layout, descriptor, manifest, config) and Docker's
image specification 1.2.
"""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gymsuite.complaints import complaints
from gymsuite.errors import UsageError

_MACHINES: Mapping[str, str] = {
    "386": "i686",
    "amd64": "x86_64",
    "arm": "armv7l",
    "arm64": "aarch64",
}


def machine(architecture: str) -> str:
    """What the kernel calls an architecture."""
    return _MACHINES.get(architecture, architecture)


class Document(BaseModel):
    """A document of which only some is read."""

    # Archives carry more than is of use here.
    model_config = ConfigDict(frozen=True, extra="ignore")


class Settings(Document):
    """What commands of an image start with."""

    env: tuple[str, ...] | None = Field(None, alias="Env")
    workdir: str | None = Field(None, alias="WorkingDir")
    user: str | None = Field(None, alias="User")


class RootFs(Document):
    """The digests of the layers, as they are unpacked."""

    diff_ids: tuple[str, ...]


class Config(Document):
    """An image's configuration, as far as a sandbox has use for it."""

    architecture: str
    os: str
    rootfs: RootFs
    config: Settings | None = None

    @property
    def settings(self) -> Settings:
        """Environment, workdir and user."""
        return self.config or Settings.model_validate({})

    @property
    def machine(self) -> str:
        """The architecture as the kernel calls it."""
        return machine(self.architecture)


class Saved(Document):
    """One image of a manifest.json."""

    config: str = Field(alias="Config")
    tags: tuple[str, ...] | None = Field(None, alias="RepoTags")
    layers: tuple[str, ...] = Field(alias="Layers")


class SavedImages(Document):
    """A manifest.json."""

    images: tuple[Saved, ...]


class Platform(Document):
    """What an image runs on."""

    architecture: str = ""
    os: str = ""


class Descriptor(Document):
    """Names a blob."""

    digest: str
    media_type: str = Field("", alias="mediaType")
    platform: Platform | None = None
    annotations: Mapping[str, str] | None = None


class Index(Document):
    """A choice of manifests."""

    manifests: tuple[Descriptor, ...]


class OciManifest(Document):
    """What makes one image."""

    config: Descriptor
    layers: tuple[Descriptor, ...]


D = TypeVar("D", bound=Document)


def parse(document: type[D], data: bytes, name: str) -> D:
    """Read a document. Raises `UsageError`."""
    try:
        return document.model_validate_json(data)
    except ValidationError as error:
        raise UsageError(f"{name} cannot be read: {complaints(error)}") from error
