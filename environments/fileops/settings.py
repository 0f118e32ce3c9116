"""Edit configuration files without disturbing the rest of them."""

import json
import re
from functools import partial
from typing import Any

from gymsuite.worlds.draws import Draws
from gymsuite.worlds.splits import share

from .job import Job, Site, python
from .names import sentence, stem
from .tree import Tree, text

_SECTIONS = (
    "cache", "database", "mail", "metrics", "network", "queue", "search", "storage",
    "auth", "backup", "billing", "cron", "display", "export", "import", "limits",
)  # fmt: skip
_KEYS = (
    "timeout", "retries", "host", "port", "workers", "interval", "capacity", "batch",
    "window", "depth", "threshold", "limit", "rate", "delay", "size", "quota",
)  # fmt: skip
_LEADS = (
    "In {folder}, set {key} of {section} to {value} in all *.conf files, and in all *.json files.",
    "All *.conf and *.json files in {folder} need {key} = {value} in {section}.",
    "Change {key} in {section} to {value}, in every *.conf and *.json file of {folder}.",
    "Let {section} have a {key} of {value} in the *.conf and *.json files in {folder}.",
    "The {key} of {section} has to be {value} in each *.conf and *.json file in {folder}.",
    "Every *.conf and *.json file in {folder} gets the value {value} for {key} in {section}.",
    "Put {key} of {section} to {value} throughout the *.conf and *.json files in {folder}.",
    "Update the *.conf and *.json files in {folder}: {key} of {section} becomes {value}.",
)
_SCRIPT = """
import json, os, re
folder, protected, section, key, value, env = {arguments!r}
for place, folders, names in os.walk(folder):
    if protected and place == protected:
        folders.clear()
        continue
    for name in names:
        path = os.path.join(place, name)
        if os.path.islink(path):
            continue
        if name.endswith(".json"):
            with open(path) as file:
                data = json.load(file)
            if data.get("env") == env:
                data.setdefault(section, {{}})[key] = value
                with open(path, "w") as file:
                    json.dump(data, file, indent=2)
        elif name.endswith(".conf"):
            with open(path, newline="") as file:
                lines = file.read().split("\\n")
            head, at, done = None, None, False
            for number, line in enumerate(lines):
                if found := re.fullmatch(r"\\[(.*)\\]", line):
                    head = found[1]
                    at = number if head == section else at
                elif head == section and re.match(rf"{{key}}\\s*=", line):
                    lines[number], done = f"{{key}} = {{value}}", True
            if at is not None and not done:
                lines.insert(at + 1, f"{{key}} = {{value}}")
            with open(path, "w", newline="") as file:
                file.write("\\n".join(lines))
"""
_PLAIN = r"""
sed -i 's/^{key} *= .*/{key} = {value}/' {folder}/*.conf
for file in {folder}/*.json; do
  python3 -c 'import json, sys
data = json.load(open(sys.argv[1]))
data["{section}"]["{key}"] = {value}
json.dump(data, open(sys.argv[1], "w"), indent=2)' "$file"
done
"""


def settings(site: Site) -> Job:
    """Set one key of one section in two kinds of files."""
    section = site.draws.choice(share(site.split, _SECTIONS))
    key = site.draws.choice(share(site.split, _KEYS))
    value = site.draws.between(10, 9999)
    env = site.draws.choice(("production", "staging"))
    words = {"folder": site.folder, "section": section, "key": key, "value": value}
    asked = (
        f"{site.pick(_LEADS).format(**words)} In a *.conf file {section} is a section, and the "
        f"line of the key becomes `{key} = {value}`; in a *.json file {section} is an object of "
        "the outermost one, and the value a number. All other lines and values stay as they are; "
        "*.json files count by their values alone, in which 10.0 is 10."
    )
    notes = (
        "Files in folders below count, too.",
        f"Only the key in [{section}] is meant; other sections may have a key of the same name.",
        "Lines that begin with # or ; are comments, and stay.",
        (
            f"A [{section}] without that key gets the line directly below its head line; a *.conf "
            f"file without [{section}] stays as it is."
        ),
        f'Only *.json files whose "env" is "{env}" are changed; one without {section} gets it.',
    )
    arguments = (site.folder, site.protected, section, key, value, env)
    plain = _PLAIN.format(**words).strip()
    return Job(
        family="settings",
        folder=site.folder,
        asked=asked,
        notes=notes if site.hard else (),
        seed=partial(_seed, site, (section, key, env)),
        apply=partial(_apply, site, (section, key, env), value),
        script=python(_SCRIPT.format(arguments=arguments)) if site.hard else plain,
        naive=plain,
    )


def _seed(site: Site, names: tuple[str, str, str], tree: Tree, draws: Draws) -> None:
    section, key, env = names
    others = [name for name in share(site.split, _SECTIONS) if name != section]
    for number, folder in enumerate(site.nested):
        for part in range(3):
            where = f"{folder}/{stem(draws, site.split).lower()}-{number}{part}"
            # Plain files have the key once; in hard ones others have it, too, and one lacks it.
            has_key = {section: part != 1 or not site.hard, others[0]: site.hard}
            heads = draws.shuffled((section, others[0]))
            tree[f"{where}.conf"] = text(
                "".join(_section(site, draws, head, key if has_key[head] else "") for head in heads)
            )
            kind = env if part != 1 else draws.choice(("test", "demo"))
            held = {key: draws.between(1, 9), "note": sentence(draws).strip()}
            data: dict[str, Any] = {"name": stem(draws, site.split), "env": kind, section: held}
            if site.hard and part == 2:  # noqa: PLR2004 - the last of three
                del data[section]
            tree[f"{where}.json"] = text(json.dumps(data, indent=4) + "\n")
    if site.hard:
        tree[f"{site.folder}/other.conf"] = text(_section(site, draws, others[0], key))
    tree[f"{site.folder}/{stem(draws, site.split).lower()}.md"] = text(f"{key} = 1\n")
    if site.protected:
        tree[f"{site.protected}/base.conf"] = text(_section(site, draws, section, key))
        tree[f"{site.protected}/base.json"] = text(json.dumps({"env": env, section: {key: 1}}))


def _section(site: Site, draws: Draws, head: str, key: str) -> str:
    lines = [f"[{head}]", f"note = {sentence(draws).strip()}"]
    if key:
        equals = draws.choice(("=", " = ", " =")) if site.hard else " = "
        lines.append(f"{key}{equals}{draws.between(1, 9)}")
    if site.hard:
        lines.append(f"{draws.choice('#;')} {key or 'note'} = {draws.below(100)}")
    return "\n".join([*lines, "", ""])


def _apply(site: Site, names: tuple[str, str, str], value: int, tree: Tree) -> None:
    section, key, env = names
    for path in sorted(filter(site.own, tree)):
        node = tree[path]
        if node.kind != "file" or not path.endswith((".conf", ".json")):
            continue
        data = node.data.decode()
        if path.endswith(".json"):
            new = _with_value(data, section, key, value, env if site.hard else "")
        else:
            new = _with_line(data, section, key, f"{key} = {value}")
        tree[path] = node._replace(data=new.encode())


def _with_value(data: str, section: str, key: str, value: int, env: str) -> str:
    loaded: dict[str, Any] = json.loads(data)
    if env and loaded.get("env") != env:
        return data
    loaded.setdefault(section, {})[key] = value
    return json.dumps(loaded)


def _with_line(data: str, section: str, key: str, line: str) -> str:
    before, head, rest = data.partition(f"[{section}]\n")
    if not head:
        return data
    own, bracket, after = rest.partition("\n[")
    changed, count = re.subn(rf"^{key}\s*=.*$", line, own, flags=re.MULTILINE)
    if not count:
        changed = f"{line}\n{own}"
    return f"{before}{head}{changed}{bracket}{after}"
