"""The Dockerfile parser: what it reads, and what it says about the rest."""

from pathlib import Path

import pytest

from gymsuite.errors import DefinitionError
from gymsuite.sandbox.dockerfile import parse
from gymsuite.sandbox.recipe import Arg, Copy, Env, Recipe, Run, User, Workdir
from gymsuite.sandbox.words import expand, split

GOOD = """\
# An image.
ARG BASE=host
FROM ${BASE}

WORKDIR /workspace
COPY requirements.txt data ./
ENV A=1 B="two words"
ENV OLD form of it
RUN pip install \\
    # a comment inside
    -r requirements.txt \\

    && true
"""


def recipe(tmp_path: Path, text: str, base: str | None = None) -> Recipe:
    path = tmp_path / "Dockerfile"
    path.write_text(text)
    return parse(path, {} if base is None else {"BASE": base})


def test_the_subset_is_read_with_its_line_numbers(tmp_path: Path) -> None:
    read = recipe(tmp_path, GOOD)
    assert (read.base, read.base_line) == ("host", 3)
    assert read.steps == (
        Workdir(5, "/workspace"),
        Copy(6, ("requirements.txt", "data"), "./"),
        Env(7, (("A", "1"), ("B", '"two words"'))),
        Env(8, (("OLD", "form of it"),)),
        Run(9, "pip install     -r requirements.txt     && true"),
    )


def test_an_argument_overrides_the_default_of_its_arg(tmp_path: Path) -> None:
    assert recipe(tmp_path, GOOD, base="debian").base == "debian"
    assert recipe(tmp_path, "ARG BASE\nFROM $BASE\n", base="debian").base == "debian"
    assert recipe(tmp_path, "FROM debian:bookworm\n", base="host").base == "debian:bookworm"


def test_a_shift_in_the_shell_is_no_here_document(tmp_path: Path) -> None:
    assert recipe(tmp_path, "FROM host\nRUN echo $((1<<2))\n").steps == (Run(2, "echo $((1<<2))"),)


@pytest.mark.parametrize(
    ("text", "line", "fragment"),
    [
        ("FROM host\nRUN true\nEXPOSE 80\n", 3, "EXPOSE is not supported; leave it out"),
        ("FROM host\n\n# note\nonbuild me\n", 4, "ONBUILD is not supported; write"),
        ("RUN true\n", 1, "RUN comes before FROM"),
        ("", 1, "no FROM"),
        ("FROM host\nFROM debian\n", 2, "a second FROM"),
        ("FROM host AS build\n", 1, "FROM takes one name"),
        ("ARG BASE\nFROM ${BASE}\n", 2, "is empty; give its ARG a default"),
        ("FROM ${OTHER}\n", 1, "$OTHER is not set"),
        ("ARG X = 1\nFROM host\n", 1, "ARG takes NAME"),
        ("FROM host\nCOPY a\n", 2, "at least one source and a target"),
        ("FROM host\nCOPY ../a /b\n", 2, "below the image's folder"),
        ("FROM host\nCOPY /a /b\n", 2, "below the image's folder"),
        ("FROM host\nCOPY *.py /b/\n", 2, "wildcards"),
        ("FROM host\nCOPY a b /c\n", 2, "ends in '/': /c/"),
        ("FROM host\nCOPY --chmod=u+x a /b\n", 2, "COPY --chmod takes octal digits"),
        ("FROM host\nCOPY --chmod=4755 a /b\n", 2, "images keep no setuid"),
        ("FROM host\nCOPY --chmod=000 a /b\n", 2, "their owner can read"),
        ("FROM host\nCOPY --from=other a /b\n", 2, "start FROM that image"),
        ("FROM host\nCOPY --link a /b\n", 2, "COPY --link is not supported"),
        ('FROM host\nCOPY ["../a", "/b"]\n', 2, "below the image's folder"),
        ("FROM host\nRUN []\n", 2, "names no program"),
        ("FROM host\nUSER a b\n", 2, "USER takes one name"),
        ("FROM host\nLABEL a\n", 2, "'a' is no name=value"),
        ("FROM host\nADD a /b\n", 2, "ADD is not supported; use COPY"),
        ("FROM host\nCOPPY a /b\n", 2, "did you mean COPY?"),
        ("FROM --platform=linux/arm64 host\n", 1, "without options"),
        ("FROM host\nARG 1X\n", 2, "ARG takes NAME"),
        ("# escape=`\nFROM host\n", 1, "another escape than the backslash"),
        ("FROM host\nRUN --mount=type=cache true\n", 2, "RUN --mount is not supported"),
        ("FROM host\nRUN cat <<EOF\nhello\nEOF\n", 2, "here-documents"),
        ("FROM host\nRUN\n", 2, "RUN needs an argument"),
        ("FROM host\nRUN true && \\\n", 2, "line continuation"),
        ("FROM host\nENV A\n", 2, "write ENV A=value"),
        ("FROM host\nENV A=1 B\n", 2, "'B' is no NAME=value"),
        ("FROM host\nENV 1A=1\n", 2, "'1A' is no variable name"),
        ('FROM host\nENV A="b\n', 2, "a quote or a backslash without its other half"),
        ("FROM host\nWORKDIR /a /b\n", 2, "WORKDIR takes one path"),
    ],
)
def test_what_is_not_supported_is_named_with_file_and_line(
    tmp_path: Path, text: str, line: int, fragment: str
) -> None:
    with pytest.raises(DefinitionError) as caught:
        recipe(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'Dockerfile'}:{line}: ")
    assert fragment in message


def test_a_missing_file_is_a_definition_error(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="cannot be read"):
        parse(tmp_path / "Dockerfile", {})


def test_variables_are_put_in_and_unknown_ones_are_an_error() -> None:
    assert expand("/opt/bin:$PATH:${A}b", {"PATH": "/bin", "A": "a"}) == "/opt/bin:/bin:ab"
    with pytest.raises(ValueError, match=r"\$NOPE is not set here; what is set: A, B"):
        expand("$NOPE", {"B": "", "A": ""})
    with pytest.raises(ValueError, match="are supported"):
        expand("${A?x}", {"A": "a"})


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("'$A'", "$A"),
        (r"\$A", "$A"),
        ('"$A b"', "a b"),
        (r'"\$A \"b\" \c"', r'$A "b" \c'),
        ("x'y z'\"$A\"w", "xy zaw"),
        ("${NO:-else$A}", "elsea"),
        ("${A:-else}", "a"),
        ("${A:+then}${NO:+then}", "then"),
        ("${EMPTY:-x}", "x"),
        ("", ""),
    ],
)
def test_quotes_escapes_and_defaults_mean_what_they_mean_to_docker(word: str, value: str) -> None:
    assert split(word) == [word] * bool(word)
    assert expand(word, {"A": "a", "EMPTY": ""}) == value


def test_the_other_forms_of_steps_are_read(tmp_path: Path) -> None:
    text = (
        "# syntax=docker/dockerfile:1\n"
        "ARG BASE=host\n"
        "ARG VERSION=1\n"
        "FROM ${BASE}\n"
        "LABEL maintainer=me\n"
        "ARG VERSION\n"
        "ARG LEFT_OUT\n"
        "ARG OTHER=$VERSION\n"
        "USER app:app\n"
        'RUN ["echo", "$HOME"]\n'
        'COPY --chmod=0600 --chown=root:0 ["a b", "/c/"]\n'
    )
    assert recipe(tmp_path, text).steps == (
        Arg(6, "VERSION", "1", None),
        Arg(7, "LEFT_OUT", None, None),
        Arg(8, "OTHER", None, "$VERSION"),
        User(9, "app:app"),
        Run(10, ("echo", "$HOME")),
        Copy(11, ('"a b"',), '"/c/"', 0o600, "root:0"),
    )
    (tmp_path / "Dockerfile").write_text(text)
    given = parse(tmp_path / "Dockerfile", {"VERSION": "2", "OTHER": "3"})
    assert given.steps[0] == Arg(6, "VERSION", "2", None)
    assert given.steps[2] == Arg(8, "OTHER", "3", "$VERSION")
    assert given.declared == {"BASE", "VERSION", "LEFT_OUT", "OTHER"}


def test_a_dockerignore_that_would_be_ignored_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".dockerignore").write_text("*")
    with pytest.raises(DefinitionError, match="dockerignore is not supported"):
        recipe(tmp_path, "FROM host\n")
