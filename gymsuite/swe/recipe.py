"""The recipe of a row's image, made of a local clone and a list of wheels.

    FROM host or debian, or what the list of wheels says in its first line: `# FROM debian:bullseye`
    the wheels in /opt/miniconda3/envs/testbed      one layer for all rows with the same list
    the repository in the row's workdir, installed in editable mode

The network is there while the wheels are fetched. Sandboxes of the image have none.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from gymsuite.errors import DefinitionError
from gymsuite.swe.repositories import find_repository, leads_elsewhere, write_bundle
from gymsuite.swe.rows import Row

_FILES = Path(__file__).with_name("image")
_SCRIPTS = ("activate", "environment.sh", "repository.sh")
_BASE = re.compile(r"#\s*FROM\s+(\S+)\s*$")
_REQUIREMENTS = "requirements"

_DOCKERFILE = """\
# {instance_id} at {base_commit}
ARG BASE=host
FROM {base}
COPY activate /opt/miniconda3/bin/activate
COPY requirements.txt environment.sh /tmp/swe/
RUN sh /tmp/swe/environment.sh
ENV PATH=/opt/miniconda3/envs/testbed/bin:$PATH
COPY repository.bundle repository.sh /tmp/swe/
RUN sh /tmp/swe/repository.sh {base_commit} {workdir} install
WORKDIR {workdir}
"""


@dataclass(frozen=True)
class Recipes:
    """Writes recipes below `folder`, from clones and lists of wheels in `repositories`."""

    repositories: Path
    folder: Path

    def name(self, row: Row) -> str:
        """What the image of a row is called: the same row and the same wheels, the same name."""
        slug = re.sub(r"[^a-z0-9]+", "-", row.instance_id.lower()).strip("-")[:150]
        parts = [row.repo, row.base_commit, row.workdir, self.requirements(row)]
        parts += [_DOCKERFILE, *((_FILES / name).read_text("utf-8") for name in _SCRIPTS)]
        return f"swe-{slug}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"

    def requirements(self, row: Row) -> str:
        """The list of wheels: the row's own, or a file beside the clones."""
        own = row.extra.get(_REQUIREMENTS)
        if isinstance(own, str) and own.strip():
            return own
        stem = row.repo.replace("/", "__")
        names = [f"{row.instance_id}.txt", f"{stem}-{row.version}.txt", f"{stem}.txt"]
        for name in names:
            if leads_elsewhere(name):
                raise DefinitionError(f"{name[:80]!r} is named by a row and is no file's name here")
            path = self.repositories / name
            if path.is_file():
                return path.read_text("utf-8")
        raise DefinitionError(
            f"{row.instance_id}: which packages does it need? Name them with versions, as "
            f"`pip freeze` does, in {self.repositories / names[1]} (or {names[0]}, {names[2]})"
        )

    def write(self, row: Row) -> str:
        """Write the recipe unless it is there, and return the image's name.

        Raises `DefinitionError` where the clone, the commit or the list of wheels is missing.
        """
        name = self.name(row)
        folder = self.folder / name
        if (folder / "Dockerfile").is_file():
            return name
        repository = find_repository(self.repositories, row.repo)
        folder.mkdir(parents=True, exist_ok=True)
        for script in _SCRIPTS:
            (folder / script).write_bytes((_FILES / script).read_bytes())
        requirements = self.requirements(row)
        (folder / "requirements.txt").write_text(requirements, "utf-8")
        commit = write_bundle(repository, row.base_commit, folder / "repository.bundle")
        dockerfile = _DOCKERFILE.format(
            instance_id=row.instance_id,
            base_commit=commit,
            workdir=_word(row, row.workdir),
            base=_base(requirements),
        )
        (folder / "Dockerfile").write_text(dockerfile, "utf-8")
        return name


def _base(requirements: str) -> str:
    first = requirements.lstrip().partition("\n")[0]
    named = _BASE.match(first)
    return named[1] if named else "${BASE}"


def _word(row: Row, text: str) -> str:
    """What a data set says goes into a shell command only if it is one plain word."""
    if not re.fullmatch(r"[A-Za-z0-9_./-]+", text):
        raise DefinitionError(f"{row.instance_id}: {text[:80]!r} is no commit or path")
    return text
