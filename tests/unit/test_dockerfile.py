"""The Dockerfile parser: what it reads, and what it says about the rest."""

from pathlib import Path

import pytest

from gymsuite.errors import DefinitionError
from gymsuite.sandbox.dockerfile import Copy, Env, Recipe, Run, Workdir, expand, parse

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
        Env(7, (("A", "1"), ("B", "two words"))),
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
        ("FROM host\nRUN true\nEXPOSE 80\n", 3, "EXPOSE is not supported; what is: ARG"),
        ("FROM host\n\n# note\nuser me\n", 4, "USER is not supported"),
        ("RUN true\n", 1, "RUN comes before FROM"),
        ("", 1, "no FROM"),
        ("FROM host\nFROM debian\n", 2, "a second FROM"),
        ("FROM host AS build\n", 1, "FROM takes one name"),
        ("ARG BASE\nFROM ${BASE}\n", 2, "is empty; give its ARG a default"),
        ("FROM ${OTHER}\n", 1, "$OTHER is not set"),
        ("FROM host\nARG X=1\n", 2, "use ENV after it"),
        ("ARG X = 1\nFROM host\n", 1, "ARG takes NAME"),
        ("FROM host\nCOPY a\n", 2, "at least one source and a target"),
        ("FROM host\nCOPY ../a /b\n", 2, "below the image's folder"),
        ("FROM host\nCOPY /a /b\n", 2, "below the image's folder"),
        ("FROM host\nCOPY *.py /b/\n", 2, "wildcards"),
        ("FROM host\nCOPY a b /c\n", 2, "ends in '/': /c/"),
        ("FROM host\nCOPY --chown=me a /b\n", 2, "COPY --chown is not supported"),
        ('FROM host\nCOPY ["a", "b"]\n', 2, "JSON form of COPY"),
        ('FROM host\nRUN ["true"]\n', 2, "JSON form of RUN"),
        ("FROM host\nRUN --mount=type=cache true\n", 2, "RUN --mount is not supported"),
        ("FROM host\nRUN cat <<EOF\nhello\nEOF\n", 2, "here-documents"),
        ("FROM host\nRUN\n", 2, "RUN needs an argument"),
        ("FROM host\nRUN true && \\\n", 2, "line continuation"),
        ("FROM host\nENV A\n", 2, "write ENV A=value"),
        ("FROM host\nENV A=1 B\n", 2, "'B' is no NAME=value"),
        ("FROM host\nENV 1A=1\n", 2, "'1A' is no variable name"),
        ("FROM host\nENV A='$B'\n", 2, "a literal $"),
        ('FROM host\nENV A="b\n', 2, "No closing quotation"),
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
    with pytest.raises(ValueError, match="only"):
        expand("${A:-x}", {"A": "a"})
