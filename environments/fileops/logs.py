"""Sum up what logs say."""

import re
from collections import Counter
from functools import partial

from gymsuite.worlds.draws import Draws
from gymsuite.worlds.splits import share

from .job import Job, Site, python
from .names import sentence, stem
from .tree import Node, Tree, gzipped, text

REPORT = "report.csv"
_LEVELS = ("INFO", "WARN", "ERROR", "FATAL")
_SERVICES = (
    "billing", "catalog", "courier", "gateway", "indexer", "ledger", "mailer", "media",
    "notifier", "payments", "pricing", "profile", "queue", "router", "search", "session",
    "sms", "stock", "storage", "tickets", "tokens", "uploads", "webhook", "worker",
    "alerts", "archiver", "backup", "builder", "cache", "console", "events", "proxy",
)  # fmt: skip
_LINE = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) ([A-Z]+) ([a-z]+): ")
_LEADS = (
    "Count the {level} lines of each service in the logs of {folder}.",
    "How many {level} lines has each service in {folder}?",
    "Sum up the {level} lines in {folder} by service.",
    "From the logs in {folder}, find how often each service logged {level}.",
    "Make a table of {level} lines by service from the logs in {folder}.",
    "Tally the services by their {level} lines in {folder}.",
    "Total the {level} lines per service over the logs of {folder}.",
    "Report per service the number of {level} lines in the logs of {folder}.",
)
_SCRIPT = """
import gzip, os, re
from collections import Counter
folder, protected, level, first, last, report = {arguments!r}
line_form = re.compile(r"(\\d{{4}}-\\d\\d-\\d\\d)T\\d\\d:\\d\\d:\\d\\dZ ([A-Z]+) ([a-z]+): ")
lines = set()
for place, folders, names in os.walk(folder):
    if protected and place == protected:
        folders.clear()
        continue
    for name in names:
        if name.endswith((".log", ".log.gz")):
            opener = gzip.open if name.endswith(".gz") else open
            with opener(os.path.join(place, name), "rt", newline="") as file:
                lines.update(line.rstrip("\\r") for line in file.read().split("\\n"))
counts = Counter()
for line in lines:
    found = line_form.match(line)
    if found and found[2] == level and first <= found[1] <= last:
        counts[found[3]] += 1
with open(os.path.join(folder, report), "w") as file:
    file.write("service,count\\n")
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        file.write(f"{{name}},{{count}}\\n")
"""
_PLAIN = r"""
{{ echo service,count
  cat {folder}/*.log | awk '$2 == "{level}" {{ sub(/:$/, "", $3); print $3 }}' | sort | uniq -c |
    LC_ALL=C sort -k1,1nr -k2,2 | awk '{{ print $2 "," $1 }}'
}} > .report
mv .report {folder}/{report}
"""


def logs(site: Site) -> Job:
    """Count lines of a level by service."""
    level = site.draws.choice(("WARN", "ERROR"))
    first = site.draws.between(3, 8)
    window = f"2031-07-{first:02}", f"2031-07-{first + 14:02}"
    asked = (
        f"{site.pick(_LEADS).format(level=level, folder=site.folder)} A line is a time, the level, "
        f"the service with a colon, and a message. Write {site.folder}/{REPORT}: the head line "
        "service,count, then a line for each service that has any, highest count first, equal "
        "ones by name."
    )
    notes = (
        "Logs are the files *.log and, compressed, *.log.gz, also in folders below.",
        (
            "A line that occurs several times, be it in one log or in several, counts once; a "
            "carriage return at its end is no part of it."
        ),
        f"Only days from {window[0]} to {window[1]} count, both included.",
        (
            "Lines that do not have that form (such as 2031-07-05T10:00:00Z ERROR name: text) do "
            "not count."
        ),
    )
    arguments = (site.folder, site.protected, level, *window, REPORT)
    plain = _PLAIN.format(folder=site.folder, level=level, report=REPORT).strip()
    return Job(
        family="logs",
        folder=site.folder,
        asked=asked,
        notes=notes if site.hard else (),
        seed=partial(_seed, site, level),
        apply=partial(_apply, site, level, window),
        script=python(_SCRIPT.format(arguments=arguments)) if site.hard else plain,
        naive=plain,
    )


def _seed(site: Site, level: str, tree: Tree, draws: Draws) -> None:
    names = draws.sample(share(site.split, _SERVICES), 4)
    for number, folder in enumerate(site.nested):
        for part in range(2):
            lines = [_line(draws, names) for _ in range(draws.between(12, 20))]
            name = f"{folder}/{stem(draws, site.split).lower()}-{number}{part}.log"
            if not site.hard:
                tree[name] = text("".join(lines))
                continue
            # One that counts, twice; and what only looks like one.
            lines += [f"2031-07-10T09:00:{part:02}Z {level} {names[0]}: again {number}\n"] * 2
            lines.append(f"{level} {names[1]}: no time at all\n")
            lines.append(f"2031-07-11 {level} {names[1]}: half a time\n")
            data = "".join(lines).replace("\n", "\r\n" if part else "\n").encode()
            tree[name + ".gz" * part] = Node("file", 0o644, gzipped(data) if part else data)
    tree[f"{site.folder}/{stem(draws, site.split).lower()}.md"] = text(sentence(draws))
    if site.protected:
        lines = [f"2031-07-12T08:00:{at:02}Z {level} {names[2]}: old\n" for at in range(3)]
        tree[f"{site.protected}/{stem(draws, site.split).lower()}.log"] = text("".join(lines))


def _line(draws: Draws, names: list[str]) -> str:
    day, hour, second = draws.between(1, 28), draws.below(24), draws.below(60)
    moment = f"2031-07-{day:02}T{hour:02}:{draws.below(60):02}:{second:02}Z"
    message = draws.choice(("slow answer", "no ERROR here", "WARN lights off", "retry"))
    level, name = draws.choice(_LEVELS), draws.choice(names)
    return f"{moment} {level} {name}: {message} {draws.below(10**6)}\n"


def _apply(site: Site, level: str, window: tuple[str, str], tree: Tree) -> None:
    lines: list[str] = []
    for path, node in tree.items():
        if not site.own(path) or node.kind != "file":
            continue
        if path.endswith(".log"):
            lines += node.data.decode().split("\n")
        elif path.endswith(".log.gz"):
            # Stored as it is: one block, behind ten bytes of head and five of its own.
            lines += node.data[15:-8].decode().split("\n")
    counts: Counter[str] = Counter()
    for line in {each.rstrip("\r") for each in lines} if site.hard else lines:
        found = _LINE.match(line)
        if found and found[2] == level:
            day = found[1][:10]
            counts[found[3]] += not site.hard or window[0] <= day <= window[1]
    ranked = sorted((+counts).items(), key=lambda item: (-item[1], item[0]))
    report = "".join(f"{name},{count}\n" for name, count in ranked)
    tree[f"{site.folder}/{REPORT}"] = text(f"service,count\n{report}")
