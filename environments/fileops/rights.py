"""Set the rights of files by what they are."""

from functools import partial

from gymsuite.worlds.draws import Draws

from .job import Job, Site
from .names import sentence, stem
from .tree import Node, Tree, link, text

_LEADS = (
    "Put the rights of the files in {} in order.",
    "The files in {} have all sorts of rights: set them right.",
    "Set the rights in {} by these rules.",
    "Audit the rights of the files in {} and correct them.",
    "Rights in {} have to follow the rules.",
    "Bring the rights of everything in {} into line.",
    "Correct who may do what with the files in {}.",
    "Make the rights in {} what they should be.",
)
_SCRIPT = r"""
find {folder} -mindepth 1 {prune}-type d -exec chmod {directory} {{}} +
find {folder} {prune}-type f -print0 | while IFS= read -r -d '' file; do
  case "$file" in
    *.key|*.pem) chmod 600 "$file" ;;
    *) if [ "$(head -c 2 -- "$file" | tr -d '\0')" = '#!' ]; then chmod {program} "$file"
       else chmod {other} "$file"; fi ;;
  esac
done
"""
_PLAIN = r"""
find {folder} -type f -exec chmod {other} {{}} +
find {folder} -type f -name '*.sh' -exec chmod {program} {{}} +
"""


def rights(site: Site) -> Job:
    """Programs, secrets and the rest."""
    program, other, directory = site.draws.choice(
        ((0o755, 0o644, 0o755), (0o750, 0o640, 0o750), (0o700, 0o644, 0o755))
    )
    # A folder that held its rights already would be no work.
    directory = 0o750 if site.hard else directory
    lead = site.pick(_LEADS).format(site.folder)
    shown = {
        "program": f"{program:o}",
        "other": f"{other:o}",
        "directory": f"{directory:o}",
        "folder": site.folder,
    }
    if not site.hard:
        asked = f"{lead} Files named *.sh get {program:o}, all other files {other:o}."
        plain = _PLAIN.format(**shown).strip()
        return Job(
            family="rights",
            folder=site.folder,
            asked=asked,
            notes=(),
            seed=partial(_seed, site),
            apply=partial(_apply, site, (program, other, 0)),
            script=plain,
            naive=plain,
        )
    asked = (
        f"{lead} Programs get {program:o}, secrets 600, all other files {other:o}, and folders "
        f"below {site.folder} {directory:o}. Do so at all depths."
    )
    notes = (
        "A program is a file that begins with #!, whatever its name.",
        "A secret is a file named *.key or *.pem, even if it begins with #!.",
        "Links are no files, and what they lead to is left alone unless it lies here.",
    )
    prune = f"-path {site.protected} -prune -o " if site.protected else ""
    script = _SCRIPT.format(prune=prune, **shown)
    return Job(
        family="rights",
        folder=site.folder,
        asked=asked,
        notes=notes,
        seed=partial(_seed, site),
        apply=partial(_apply, site, (program, other, directory)),
        script=script.strip(),
        naive=_PLAIN.format(**shown).strip(),
    )


def _seed(site: Site, tree: Tree, draws: Draws) -> None:
    modes = (0o600, 0o640, 0o644, 0o700, 0o755, 0o777)
    for number, folder in enumerate(site.nested):
        for part in range(4):
            name = f"{folder}/{stem(draws, site.split).lower()}-{number}{part}"
            ending = draws.choice(("md", "txt", "csv")) if part else "sh"
            words = f"#!/bin/sh\n# {sentence(draws)}" if not part else sentence(draws)
            tree[f"{name}.{ending}"] = text(words, draws.choice(modes))
        if not site.hard:
            continue
        tree[f"{folder}/{stem(draws, site.split).lower()}-run{number}"] = text(
            f"#!/usr/bin/env python3\n# {sentence(draws)}", 0o644
        )
        tree[f"{folder}/words-{number}.sh"] = text(f"no program: {sentence(draws)}", 0o755)
        ending = draws.choice(("key", "pem"))
        tree[f"{folder}/{stem(draws, site.split).lower()}-{number}.{ending}"] = text(
            sentence(draws), 0o644
        )
        tree.setdefault(folder, Node("directory", 0o755))
    if site.hard:
        outside = f"common/{stem(draws, site.split).lower()}.sh"
        tree[outside] = text(f"#!/bin/sh\n# {sentence(draws)}", 0o640)
        tree[f"{site.folder}/shared.sh"] = link(f"../{outside}")
    if site.protected:
        tree[f"{site.protected}/{stem(draws, site.split).lower()}.sh"] = text(
            sentence(draws), 0o600
        )


def _apply(site: Site, modes: tuple[int, int, int], tree: Tree) -> None:
    program, other, directory = modes
    if site.hard:
        for path in list(filter(site.own, tree)):
            while (path := path.rpartition("/")[0]) != site.folder:
                tree[path] = Node("directory", directory)
    for path in filter(site.own, tree):
        node = tree[path]
        if node.kind != "file":
            continue
        if site.hard:
            secret, runs = path.endswith((".key", ".pem")), node.data.startswith(b"#!")
        else:
            secret, runs = False, path.endswith(".sh")
        tree[path] = node._replace(mode=0o600 if secret else program if runs else other)
