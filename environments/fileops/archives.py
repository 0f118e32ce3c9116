"""Unpack archives, or restore from them what is missing or damaged."""

import hashlib
from functools import partial

from gymsuite.worlds.draws import Draws

from .job import Job, Site
from .names import sentence, stem
from .tree import Node, Tree, gzipped, tar, text

SUMS = "SHA256SUMS"
LOST = "lost.txt"
BACKUPS = "backups"
_UNPACK_LEADS = (
    "Unpack the archives in {}.",
    "The *.tar files in {} have to be unpacked.",
    "Get out what is in the *.tar files in {}.",
    "Extract every *.tar file in {}.",
    "Open up all *.tar files of {}.",
    "Take the files out of the *.tar archives in {}.",
    "Let the *.tar archives in {} become folders.",
    "Turn each *.tar file in {} into a folder.",
)
_RESTORE_LEADS = (
    "Repair {} from its backups.",
    "Some files in {} are damaged or gone: restore them.",
    "Bring {} back to what its checksums say.",
    "Restore in {} whatever does not agree with its checksums.",
    "{} lost some files and has others with wrong contents: put that right.",
    "Use the backups in {} to mend it.",
    "Make the files of {} match their checksums again.",
    "Check {} against its checksums, and restore what fails.",
)
_PLAIN = """
for archive in {folder}/*.tar; do
  mkdir -p "${{archive%.tar}}"
  tar -xf "$archive" -C "${{archive%.tar}}" && rm -- "$archive"
done
"""
_RESTORE = r"""
work=$(mktemp -d)
number=0
find {folder}/{backups} -type f | while IFS= read -r archive; do
  number=$((number + 1))
  mkdir "$work/$number"
  tar -xf "$archive" -C "$work/$number" 2>/dev/null || true
done
: > "$work/lost"
while IFS= read -r line; do
  sum=${{line%% *}} name=${{line#*  }} file={folder}/${{line#*  }}
  if [ -f "$file" ] && [ "$(sha256sum < "$file" | cut -d' ' -f1)" = "$sum" ]; then continue; fi
  found=no
  for copy in "$work"/*/"$name"; do
    if [ -f "$copy" ] && [ "$(sha256sum < "$copy" | cut -d' ' -f1)" = "$sum" ]; then
      mkdir -p "$(dirname "$file")"
      cat "$copy" > "$file"
      found=yes
      break
    fi
  done
  [ "$found" = yes ] || printf '%s\n' "$name" >> "$work/lost"
done < {folder}/{sums}
LC_ALL=C sort "$work/lost" > {folder}/{lost}
rm -rf "$work"
"""
_NAIVE = """
for archive in $(ls {folder}/{backups}/* | sort); do
  tar -xf "$archive" -C {folder} || true
done
: > {folder}/{lost}
"""


def archives(site: Site) -> Job:
    """Plain: unpack. Hard: restore by checksums, from archives that are damaged themselves."""
    return _restoring(site) if site.hard else _unpacking(site)


def _unpacking(site: Site) -> Job:
    plain = _PLAIN.format(folder=site.folder).strip()
    return Job(
        family="archives",
        folder=site.folder,
        asked=f"{site.pick(_UNPACK_LEADS).format(site.folder)} What is in name.tar goes into the "
        "folder name beside it, and the archive is removed.",
        notes=(),
        seed=partial(_seed_plain, site),
        apply=partial(_unpack, site),
        script=plain,
        naive=plain,
    )


def _seed_plain(site: Site, tree: Tree, draws: Draws) -> None:
    for number in range(3):
        name = f"{stem(draws, site.split).lower()}-{number}"
        tree[f"{site.folder}/{name}.tar"] = Node("file", 0o644, _archive(_some_files(site, draws)))
    tree[f"{site.folder}/{stem(draws, site.split).lower()}.md"] = text(sentence(draws))


def _some_files(site: Site, draws: Draws) -> dict[str, bytes]:
    names = [
        f"{'inner/' if at == 1 else ''}{stem(draws, site.split).lower()}{at}.txt" for at in range(4)
    ]
    return {name: sentence(draws).encode() for name in names}


def _archive(files: dict[str, bytes]) -> bytes:
    return tar((name, Node("file", 0o644, data)) for name, data in files.items())


def _unpack(site: Site, tree: Tree) -> None:
    for path in [path for path in tree if site.own(path) and path.endswith(".tar")]:
        for name, data in _members(tree.pop(path).data).items():
            tree[f"{path.removesuffix('.tar')}/{name}"] = Node("file", 0o644, data)


def _members(data: bytes) -> dict[str, bytes]:
    """What is in an archive of ours, as far as it is there: blocks of 512 bytes, heads first."""
    if data.startswith(b"\x1f\x8b"):
        data = data[15:-8]
    found, at = {}, 0
    while at + 512 <= len(data) and data[at]:
        name = data[at : at + 100].rstrip(b"\0").decode()
        size = int(data[at + 124 : at + 135], 8)
        found[name.removeprefix("./")] = data[at + 512 : at + 512 + size]
        at += 512 + (size + 511) // 512 * 512
    return found


def _restoring(site: Site) -> Job:
    words = {"folder": site.folder, "backups": BACKUPS, "sums": SUMS, "lost": LOST}
    asked = (
        f"{site.pick(_RESTORE_LEADS).format(site.folder)} {site.folder}/{SUMS} has for each file, "
        f"relative to {site.folder}, the SHA-256 that it should have, as sha256sum writes it. A "
        "file that is missing, or has another sum, gets the contents with that sum from the "
        f"archives in {site.folder}/{BACKUPS}."
    )
    notes = (
        (
            "Archives may be compressed, whatever their names say, and some are cut off: what can "
            "still be got out of them counts."
        ),
        (
            "Files in an archive may be out of date or damaged; only the sum decides. A file has "
            "the same path in an archive, with or without ./ before it."
        ),
        (
            f"Write to {site.folder}/{LOST} the paths of the files that no archive has with the "
            "right sum, one a line in byte order; those files stay as they are. The archives "
            "stay, too."
        ),
    )
    return Job(
        family="archives",
        folder=site.folder,
        asked=asked,
        notes=notes,
        seed=partial(_seed_hard, site),
        apply=partial(_restore, site),
        script=_RESTORE.format(**words).strip(),
        naive=_NAIVE.format(**words).strip(),
    )


def _seed_hard(site: Site, tree: Tree, draws: Draws) -> None:
    right = {
        f"{'part-one/' if at % 3 == 1 else ''}{stem(draws, site.split).lower()}-{at}.bin": (
            sentence(draws).encode()
        )
        for at in range(9)
    }
    names = list(right)
    sums = "".join(f"{hashlib.sha256(right[n]).hexdigest()}  {n}\n" for n in sorted(right))
    tree[f"{site.folder}/{SUMS}"] = text(sums)
    damaged = draws.sample(names, 6)
    missing, lost = damaged[:3], damaged[5]
    for name, data in right.items():
        if name in missing:
            continue
        wrong = data[:-4] + b"\xff\xfe\xfd\n" if name in damaged else data
        tree[f"{site.folder}/{name}"] = Node("file", 0o644, wrong)
    stale = {name: b"stale " + data for name, data in right.items()}
    first = {**stale, **{n: right[n] for n in damaged[:2]}}
    second = {f"./{n}": right[n] if n in damaged[2:4] else stale[n] for n in names if n != lost}
    # Cut off in its last member, behind the one that is needed.
    third = _archive({damaged[4]: right[damaged[4]], damaged[0]: right[damaged[0]] * 300})
    last = {name: stale[name] for name in names}
    for at, data in enumerate(
        (gzipped(_archive(first)), _archive(second), third[:2300], gzipped(_archive(last)))
    ):
        ending = draws.choice(("tar", "tar.gz", "tgz", "bak"))
        name = f"{site.folder}/{BACKUPS}/{at}-{stem(draws, site.split).lower()}.{ending}"
        tree[name] = Node("file", 0o644, data)
    if site.protected:
        tree[f"{site.protected}/{names[0].rpartition('/')[2]}"] = text(sentence(draws))


def _restore(site: Site, tree: Tree) -> None:
    has: dict[tuple[str, str], bytes] = {}
    for path in sorted(tree):
        if path.startswith(f"{site.folder}/{BACKUPS}/"):
            for name, data in _members(tree[path].data).items():
                has[name, hashlib.sha256(data).hexdigest()] = data
    lost = []
    for line in tree[f"{site.folder}/{SUMS}"].data.decode().splitlines():
        wanted, _, name = line.partition("  ")
        path = f"{site.folder}/{name}"
        there = tree.get(path, text(""))
        if path in tree and hashlib.sha256(there.data).hexdigest() == wanted:
            continue
        if (name, wanted) in has:
            tree[path] = there._replace(data=has[name, wanted])
        else:
            lost.append(name)
    listed = "".join(f"{name}\n" for name in sorted(lost, key=str.encode))
    tree[f"{site.folder}/{LOST}"] = text(listed)
