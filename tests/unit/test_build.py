"""Building a recipe into layers, with a base and a RUN of our own in place of real ones."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gymsuite.errors import DefinitionError, SandboxError
from gymsuite.sandbox.base import Base
from gymsuite.sandbox.build import Builder, build
from gymsuite.sandbox.dockerfile import parse
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.layers import lookup, walk
from gymsuite.sandbox.protocol import ExecResult
from gymsuite.sandbox.store import Store


class Workshop:
    """A folder to write a recipe in, and a builder that notes what it is asked to run."""

    def __init__(self, tmp_path: Path, held: contextlib.ExitStack) -> None:
        self.folder = tmp_path / "image"
        self.folder.mkdir()
        self.cache = tmp_path / "cache"
        self.commands: list[str] = []
        self.images: list[Image] = []
        self.reports: list[str] = []
        self.result = ExecResult(0, b"", b"")
        self._held = held

    async def _run(self, image: Image, command: str | Sequence[str], tree: Path) -> ExecResult:
        text = command if isinstance(command, str) else " ".join(command)
        self.commands.append(text)
        self.images.append(image)
        (tree / "ran").write_text(text)
        return self.result

    def build(self, text: str) -> Image:
        (self.folder / "Dockerfile").write_text(text)
        recipe = parse(self.folder / "Dockerfile", {})
        store = Store(self.cache, None)
        builder = Builder(store, self._run, self.reports.append, self._held)
        return asyncio.run(build(builder, "image", recipe, a_base()))

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


def a_base() -> Base:
    async def make(tree: Path) -> str:
        for name in ("usr/bin", "workspace", "opt", "shared"):
            (tree / name).mkdir(parents=True)
        (tree / "shared").chmod(0o1777)
        (tree / "bin").symlink_to("usr/bin")
        (tree / "data").symlink_to("opt/real")
        return "3.11.7"

    return Base("host", ("1",), make, {"PATH": "/bin"}, (Path("/usr"),))


def texts(image: Image) -> dict[str, str]:
    """All files of an image but those of its base."""
    return {
        path: entry.path.read_text()
        for path, entry in walk(image.layers)
        if entry.path.is_file() and not entry.path.is_symlink()
    }


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    with contextlib.ExitStack() as held:
        yield Workshop(tmp_path, held)


def test_the_same_recipe_is_the_same_image_and_is_built_once(workshop: Workshop) -> None:
    text = "FROM host\nCOPY a /opt/\nRUN make it\nENV A=1\n"
    workshop.file("a", "a")
    first = workshop.build(text)
    reports = list(workshop.reports)
    second = workshop.build(text)
    assert second == first
    assert workshop.commands == ["make it"]
    assert workshop.reports == reports
    assert reports == ["image: FROM host", "image: COPY a /opt/", "image: RUN make it"]


def test_whatever_an_image_is_made_of_changes_its_digest(workshop: Workshop) -> None:
    file = workshop.file("a", "a")
    text = "FROM host\nCOPY a /opt/\nRUN true\n"
    digests = [workshop.build(text).digest]
    file.chmod(0o755)
    digests.append(workshop.build(text).digest)
    file.write_text("b")
    digests.append(workshop.build(text).digest)
    digests.append(workshop.build(text.replace("/opt/", "/opt/b")).digest)
    digests.append(workshop.build(text.replace("true", "false")).digest)
    digests.append(workshop.build(text + "ENV A=1\n").digest)
    digests.append(workshop.build(text + "WORKDIR /shared\n").digest)
    digests.append(workshop.build(text.replace("RUN", "ENV A=1\nRUN")).digest)
    assert len(set(digests)) == len(digests)


def test_the_time_and_umask_of_a_checkout_change_nothing(workshop: Workshop) -> None:
    file = workshop.file("a", "a")
    before = workshop.build("FROM host\nCOPY a /opt/\n")
    file.chmod(0o600)
    assert workshop.build("FROM host\nCOPY a /opt/\n") == before


def test_copy_places_files_as_docker_does(workshop: Workshop) -> None:
    workshop.file("one", "1").chmod(0o700)
    workshop.file("dir/two", "2")
    workshop.file("dir/sub/three", "3")
    (workshop.folder / "dir/link").symlink_to("/nowhere")
    image = workshop.build(
        "FROM host\n"
        "WORKDIR /workspace/deep\n"
        "COPY one new\n"
        "COPY one dir /opt/\n"
        "COPY dir ../dir\n"
        "COPY one /data/\n"
        "COPY one /shared\n"
        "COPY one /\n"
        "COPY dir/sub //srv\n"
    )
    assert image.workdir == "/workspace/deep"
    assert texts(image) == {
        "/workspace/deep/new": "1",
        "/opt/one": "1",
        "/opt/two": "2",
        "/opt/sub/three": "3",
        "/workspace/dir/two": "2",
        "/workspace/dir/sub/three": "3",
        "/opt/real/one": "1",
        "/shared/one": "1",
        "/one": "1",
        "/srv/three": "3",
    }
    link = lookup(image.layers, "/opt/link")
    assert link is not None
    assert str(link.path.readlink()) == "/nowhere"


def test_copy_leaves_plain_modes_and_those_of_directories_below(workshop: Workshop) -> None:
    workshop.file("tool", "1").chmod(0o700)
    workshop.file("text", "1").chmod(0o666)
    image = workshop.build("FROM host\nCOPY tool text /shared/new/\n")
    modes = {}
    for path in ("/shared/new/tool", "/shared/new/text", "/shared/new", "/shared"):
        entry = lookup(image.layers, path)
        assert entry is not None
        modes[path] = entry.status.st_mode & 0o7777
    assert modes == {
        "/shared/new/tool": 0o755,
        "/shared/new/text": 0o644,
        "/shared/new": 0o755,
        "/shared": 0o1777,
    }


def test_env_refers_to_earlier_values_and_to_the_base(workshop: Workshop) -> None:
    image = workshop.build(
        "FROM host\nENV A=/opt PATH=/opt/bin:$PATH\nENV B=${A}/b\nWORKDIR $B\nCOPY Dockerfile c\n"
    )
    assert image.env == {"A": "/opt", "PATH": "/opt/bin:/bin", "B": "/opt/b"}
    assert image.workdir == "/opt/b"
    assert lookup(image.layers, "/opt/b/c") is not None


def test_an_argument_is_seen_by_steps_and_commands_and_not_kept(workshop: Workshop) -> None:
    image = workshop.build(
        "FROM host\nARG A=1\nARG EMPTY\nENV B=$A C=c\nARG C=hidden\nWORKDIR /opt/$A$C\n"
        "RUN first\nARG A=2\nRUN first\n"
    )
    assert image.env == {"PATH": "/bin", "B": "1", "C": "c"}
    assert image.workdir == "/opt/1c"
    seen = [run.env for run in workshop.images]
    assert [(env["A"], env["C"], "EMPTY" in env) for env in seen] == [
        ("1", "c", False),
        ("2", "c", False),
    ]


def test_the_user_is_noted_and_root_by_any_name_is_root(workshop: Workshop) -> None:
    workshop.file("passwd", "app:x:1000:1001::/home/app:\n")
    text = "FROM host\nCOPY passwd /etc/\nUSER app\nRUN it\nUSER {}\n"
    assert workshop.build(text.format("root:0")).user == "root"
    assert workshop.images[0].user == "app"
    ids = workshop.build(text.format("1000:10"))
    assert ids.user == "1000:10"
    assert ids.digest != workshop.build(text.format("0")).digest
    assert workshop.commands == ["it"]
    with pytest.raises(DefinitionError, match="Dockerfile:5: USER takes a name or number"):
        workshop.build(text.format('"a b"'))
    with pytest.raises(DefinitionError, match="Dockerfile:5: no user 'other' in the image's /etc"):
        workshop.build(text.format("other"))


def test_a_user_brings_a_home_unless_another_was_chosen(workshop: Workshop) -> None:
    workshop.file("passwd", "app:x:1000:1001::/home/app:\n")
    text = "FROM host\nENV HOME=/root\nCOPY passwd /etc/\nUSER app\n"
    assert workshop.build(text).env["HOME"] == "/home/app"
    assert workshop.build(text + "USER 7\n").env["HOME"] == "/"
    assert workshop.build(text + "USER root\n").env["HOME"] == "/root"
    assert workshop.build(text + "ENV HOME=/srv\nUSER root\n").env["HOME"] == "/srv"


def test_files_are_copied_for_whom_the_image_ends_as(workshop: Workshop) -> None:
    workshop.file("passwd", "app:x:1000:1001::/home/app:\n")
    for owner, user in (
        ("app", "USER app"),
        ("app:staff", "USER app"),
        ("$WHO", "ARG WHO=app\nUSER $WHO"),
        ("root", "USER app"),
        ("0:0", ""),
    ):
        text = f"FROM host\nCOPY passwd /etc/\nCOPY --chown={owner} passwd /opt/\n{user}\n"
        assert lookup(workshop.build(text).layers, "/opt/passwd") is not None
    for owner, user, last in (("app", "", "root"), ("other", "USER app", "app")):
        text = f"FROM host\nCOPY passwd /etc/\nCOPY --chown={owner} passwd /opt/\n{user}\n"
        with pytest.raises(DefinitionError, match=f"Dockerfile:3: .* ends as {last}; end it with"):
            workshop.build(text)


def test_a_command_as_words_reaches_no_shell(workshop: Workshop) -> None:
    words = workshop.build('FROM host\nRUN ["echo", "$A"]\n')
    assert workshop.commands == ["echo $A"]
    assert words.digest != workshop.build("FROM host\nRUN echo $A\n").digest


def test_copy_with_a_mode_gives_it_to_what_is_copied_alone(workshop: Workshop) -> None:
    workshop.file("dir/tool", "1")
    image = workshop.build("FROM host\nCOPY --chmod=750 dir /shared/\nCOPY dir /opt/\n")
    modes = {
        path: entry.status.st_mode & 0o7777
        for path in ("/shared/tool", "/shared")
        if (entry := lookup(image.layers[:-1], path))
    }
    assert modes == {"/shared/tool": 0o750, "/shared": 0o1777}
    copied = workshop.build("FROM host\nCOPY --chmod=701 dir /shared/new\n")
    directory = lookup(copied.layers, "/shared/new")
    assert directory is not None
    assert directory.status.st_mode & 0o7777 == 0o701


def test_a_full_disk_is_not_the_recipes_fault(workshop: Workshop) -> None:
    workshop.result = ExecResult(1, b"No space left on device", b"", disk_full=True)
    with pytest.raises(SandboxError, match="RUN make: no disk space was left"):
        workshop.build("FROM host\nRUN make\n")
    workshop.result = ExecResult(137, b"", b"Killed", oom=True)
    with pytest.raises(SandboxError, match="no memory was left"):
        workshop.build("FROM host\nRUN make\n")
    assert list((workshop.cache / "layers").glob(".partial-*")) == []


@pytest.mark.parametrize(
    ("step", "fragment"),
    [
        ("COPY datas /opt/", "there is no 'datas' in {folder}; did you mean 'data'?"),
        ("COPY out /opt/", "out leads out of the image's folder"),
        ("COPY data /bin/tool", "/usr/bin/tool lies in /usr, which is the host's"),
        ("ENV A=$NOPE", "$NOPE is not set here; what is set: PATH"),
        ("WORKDIR $NOPE", "$NOPE is not set here"),
    ],
)
def test_a_step_that_cannot_be_built_is_named_by_file_and_line(
    workshop: Workshop, step: str, fragment: str
) -> None:
    workshop.file("data", "x")
    (workshop.folder / "out").symlink_to("/etc/hosts")
    with pytest.raises(DefinitionError) as caught:
        workshop.build(f"FROM host\n\n{step}\n")
    assert str(caught.value).startswith(f"{workshop.folder}/Dockerfile:3: ")
    assert fragment.format(folder=workshop.folder) in str(caught.value)


def test_a_command_that_fails_shows_its_line_and_its_last_output(workshop: Workshop) -> None:
    output = "".join(f"line {number}\n" for number in range(100)).encode()
    workshop.result = ExecResult(3, output, b"the cause\n")
    with pytest.raises(DefinitionError) as caught:
        workshop.build("FROM host\nRUN false \\\n  && true\n")
    message = str(caught.value)
    assert message.startswith(f"{workshop.folder}/Dockerfile:2: RUN false && true: exit code 3")
    assert message.endswith("line 99\nthe cause")
    assert "line 10\n" not in message
    workshop.result = ExecResult(0, b"", b"")
    assert workshop.build("FROM host\nRUN false \\\n  && true\n").python == "3.11.7"


def test_a_command_that_never_ends_is_said_to_be_one(workshop: Workshop) -> None:
    workshop.result = ExecResult(137, b"", b"", timed_out=True, wall_seconds=1800)
    with pytest.raises(DefinitionError, match="no end after 1800 seconds"):
        workshop.build("FROM host\nRUN sleep infinity\n")


def test_more_layers_than_a_mount_can_take_are_refused(workshop: Workshop) -> None:
    steps = "".join(f"RUN step {number}\n" for number in range(40))
    with pytest.raises(DefinitionError, match=r"Dockerfile:25: more than 24 layers"):
        workshop.build(f"FROM host\n{steps}")
