"""Remove files whose contents are there already."""

from functools import partial

from gymsuite.worlds.draws import Draws

from .job import Job, Site, python
from .names import sentence, stem
from .tree import Tree, text

REPORT = "removed.tsv"
_LEADS = (
    "Remove duplicates from {}.",
    "{} has files with equal contents: keep one of each.",
    "Free {} of copies.",
    "Of files in {} with the same contents, only one may stay.",
    "Clear out the duplicates in {}.",
    "Nothing in {} should be there twice.",
    "Drop from {} what is stored more than once.",
    "Reduce {} to one file for each contents.",
)
_SCRIPT = """
import hashlib, os
folder, protected, report = {arguments!r}
found = []
for place, folders, names in os.walk(folder):
    if protected and place == protected:
        folders.clear()
        continue
    for name in names:
        path = os.path.join(place, name)
        if not os.path.islink(path) and os.path.isfile(path):
            found.append(os.path.relpath(path, folder))
kept, lines = {{}}, []
for path in sorted(found, key=lambda path: (path.count("/"), os.fsencode(path))):
    with open(os.path.join(folder, path), "rb") as file:
        data = file.read()
    if not data:
        continue
    key = hashlib.sha256(data).hexdigest()
    if key in kept:
        os.remove(os.path.join(folder, path))
        lines.append((path, kept[key]))
    else:
        kept[key] = path
with open(os.path.join(folder, report), "w") as file:
    for line in sorted(lines, key=lambda line: os.fsencode(line[0])):
        file.write("\\t".join(line) + "\\n")
"""
_PLAIN = r"""
find {folder} -type f | LC_ALL=C sort | while IFS= read -r file; do sha256sum "$file"; done |
  awk '{{ key = $1; sub(/^[^ ]+  /, "") }}
       key in seen {{ printf "%s\t%s\n", $0, seen[key]; next }}
       {{ seen[key] = $0 }}' |
  while IFS="$(printf '\t')" read -r gone kept; do
    rm -- "$gone"
    printf '%s\t%s\n' "${{gone#{folder}/}}" "${{kept#{folder}/}}"
  done > .removed
mv .removed {folder}/{report}
"""


def deduping(site: Site) -> Job:
    """Keep the first of each contents, and list what went."""
    asked = (
        f"{site.pick(_LEADS).format(site.folder)} Of files with equal contents keep the one whose "
        f"path is first in byte order, and remove the others. Write {site.folder}/{REPORT}: a line "
        "for each removed file, in byte order, with its path, a tab, and the path of the one that "
        f"was kept, both relative to {site.folder}."
    )
    notes = (
        (
            "Not byte order alone decides which one stays: a file in fewer folders goes before one "
            "in more, and only then byte order counts."
        ),
        "Empty files are no duplicates of each other; all of them stay.",
    )
    plain = _PLAIN.format(folder=site.folder, report=REPORT).strip()
    arguments = (site.folder, site.protected, REPORT)
    return Job(
        family="deduping",
        folder=site.folder,
        asked=asked,
        notes=notes if site.hard else (),
        seed=partial(_seed, site),
        apply=partial(_apply, site),
        script=python(_SCRIPT.format(arguments=arguments)) if site.hard else plain,
        naive=plain,
    )


def _seed(site: Site, tree: Tree, draws: Draws) -> None:
    contents = [sentence(draws) for _ in range(draws.between(4, 6))]
    places = site.nested if site.hard else (site.folder, f"{site.folder}/copies")
    for number, data in enumerate(contents):
        copies = draws.between(1, 3) if number else 3
        for copy in range(copies):
            folder = draws.choice(places)
            name = f"{stem(draws, site.split).lower()}-{number}{copy}.txt"
            tree[f"{folder}/{name}"] = text(data)
    if site.hard:
        # Byte order alone would keep the deeper one.
        twice = sentence(draws)
        tree[f"{places[-1]}/{stem(draws, site.split).lower()}-a.txt"] = text(twice)
        tree[f"{site.folder}/zz-{stem(draws, site.split).lower()}.txt"] = text(twice)
        for folder in places[:2]:
            tree[f"{folder}/empty-{draws.below(1000)}.txt"] = text("")
    if site.protected:
        tree[f"{site.protected}/{stem(draws, site.split).lower()}-0.txt"] = text(contents[0])


def _apply(site: Site, tree: Tree) -> None:
    kept: dict[bytes, str] = {}
    lines = []
    start = len(site.folder) + 1
    own = [path for path in tree if site.own(path) and tree[path].kind == "file"]

    def order(path: str) -> tuple[int, bytes]:
        return path.count("/") if site.hard else 0, path.encode()

    for path in sorted(own, key=order):
        data = tree[path].data
        if site.hard and not data:
            continue
        if data in kept:
            del tree[path]
            lines.append((path[start:], kept[data][start:]))
        else:
            kept[data] = path
    lines.sort(key=lambda line: line[0].encode())
    report = "".join(f"{gone}\t{stays}\n" for gone, stays in lines)
    tree[f"{site.folder}/{REPORT}"] = text(report)
