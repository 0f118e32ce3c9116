"""Rename files by a convention."""

import re
from functools import partial

from gymsuite.worlds.draws import Draws

from .job import Job, Site, python
from .names import sentence, stem
from .tree import Tree, text

_LEADS = (
    "Rename the {ext} files in {folder}.",
    "The {ext} files in {folder} need new names.",
    "Give every {ext} file in {folder} a tidy name.",
    "In {folder}, bring the names of all {ext} files into shape.",
    "Make the names of the {ext} files in {folder} uniform.",
    "Tidy the names of the {ext} files of {folder}.",
    "All {ext} files of {folder} have to be renamed.",
    "Names of {ext} files in {folder} must follow the convention.",
)
_SCRIPT = """
import os, re
folder, ext, sep, protected = {arguments!r}
for place, folders, names in os.walk(os.fsencode(folder)):
    if protected and place == os.fsencode(protected):
        folders.clear()
        continue
    taken, moves = set(), []
    for name in sorted(names):
        stem, dot, end = name.decode().rpartition(".")
        old = os.path.join(place, name)
        if not stem or end.lower() != ext or name.startswith(b".") or os.path.islink(old):
            continue
        new = re.sub("[^a-z0-9]+", sep, stem.lower()).strip(sep)
        number, wanted = 2, new
        while wanted in taken:
            wanted, number = f"{{new}}{{sep}}{{number}}", number + 1
        taken.add(wanted)
        moves.append((old, os.path.join(place, f"{{wanted}}.{{ext}}".encode())))
    for old, _ in moves:
        os.rename(old, old + b"~moving")
    for old, new in moves:
        os.rename(old + b"~moving", new)
"""
_PLAIN = r"""
find {folder} -maxdepth 1 -type f -name '*.{ext}' | while IFS= read -r old; do
  stem=$(basename "$old" .{ext} | tr 'A-Z' 'a-z' |
    sed -E 's/[^a-z0-9]+/{sep}/g; s/^{sep}//; s/{sep}$//')
  [ "$old" = "{folder}/$stem.{ext}" ] || mv -- "$old" "{folder}/$stem.{ext}"
done
"""


def renaming(site: Site) -> Job:
    """Lower case, one separator for everything that is no letter or digit."""
    ext, sep = site.draws.choice(("txt", "dat", "scan", "doc")), site.draws.choice(("-", "_"))
    asked = (
        f"{site.pick(_LEADS).format(ext='.' + ext, folder=site.folder)} The new name is the old "
        f"one in lower case, with {sep!r} in place of each run of characters before the extension "
        f"that are no letter (a-z) and no digit, and none at its beginning and end."
    )
    notes = (
        (
            "Files in folders below are renamed as well, within their folder; folders keep their "
            "names."
        ),
        f"The extension is .{ext} in any case, and becomes .{ext}.",
        "Files whose name begins with a dot, and links, keep their names.",
        (
            "Where a new name would come twice in a folder, the file whose old name is first in "
            f"byte order gets it; the next one gets {sep}2 before the extension, then {sep}3, "
            "and so on."
        ),
    )
    arguments = (site.folder, ext, sep, site.protected)
    plain = _PLAIN.format(folder=site.folder, ext=ext, sep=sep).strip()
    return Job(
        family="renaming",
        folder=site.folder,
        asked=asked,
        notes=notes if site.hard else (),
        seed=partial(_seed, site, ext),
        apply=partial(_apply, site, ext, sep),
        script=python(_SCRIPT.format(arguments=arguments)) if site.hard else plain,
        naive=plain,
    )


def _seed(site: Site, ext: str, tree: Tree, draws: Draws) -> None:
    for folder in site.nested:
        for number in range(draws.between(4, 7)):
            first, second = stem(draws, site.split), stem(draws, site.split)
            name = draws.choice(("{} {} {}", "{}_{}  ({})", "{}&{}-{}", "{}.{}.{}"))
            year = draws.between(2031, 2038) * 100 + number
            tree[f"{folder}/{name.format(first, second.upper(), year)}.{ext}"] = text(
                sentence(draws)
            )
        tree[f"{folder}/{stem(draws, site.split)} Notes.md"] = text(sentence(draws))
        if site.hard:
            _add_traps(site, folder, ext, tree, draws)
    if site.protected:
        name = f"{stem(draws, site.split)} Sealed Copy.{ext}"
        tree[f"{site.protected}/{name}"] = text(sentence(draws))


def _add_traps(site: Site, folder: str, ext: str, tree: Tree, draws: Draws) -> None:
    first, second = draws.sample(("Trade", "Visit", "Route", "Stock", "Claim"), 2)
    for name in (f"{first} {second}", f"{first}-{second}", f"{first.lower()}  {second}!"):
        tree[f"{folder}/{name}.{ext}"] = text(sentence(draws))
    tree[f"{folder}/--{stem(draws, site.split)} $HOME's.{ext.upper()}"] = text(sentence(draws))
    tree[f"{folder}/.{stem(draws, site.split)} Hidden.{ext}"] = text(sentence(draws))


def new_stem(old: str, sep: str) -> str:
    """The convention itself, without the extension."""
    return re.sub(r"[^a-z0-9]+", sep, old.lower()).strip(sep)


def _apply(site: Site, ext: str, sep: str, tree: Tree) -> None:
    taken: set[str] = set()
    moves = {}
    for path in sorted(filter(site.own, tree), key=str.encode):
        folder, _, name = path.rpartition("/")
        old, _, end = name.rpartition(".")
        if tree[path].kind != "file" or not old or name.startswith(".") or end.lower() != ext:
            continue
        if not site.hard and (folder != site.folder or end != ext):
            continue
        base = wanted = f"{folder}/{new_stem(old, sep)}"
        number = 2
        while wanted in taken:
            wanted, number = f"{base}{sep}{number}", number + 1
        taken.add(wanted)
        moves[path] = f"{wanted}.{ext}"
    moved = {new: tree.pop(old) for old, new in moves.items()}
    tree.update(moved)
