"""What goes into the image of a row, and what is looked for there."""

import subprocess
from pathlib import Path

import pytest

from gymsuite import DefinitionError
from gymsuite.swe.leaks import signs
from gymsuite.swe.recipe import Recipes
from gymsuite.swe.repositories import find_repository, write_bundle
from gymsuite.swe.rows import Row
from gymsuite.swe.supply import Supply, official_name

PATCH = """\
diff --git a/lib/a.py b/lib/a.py
--- a/lib/a.py
+++ b/lib/a.py
@@ -1,2 +1,3 @@
-    return no_longer_here
+    if the_argument is None:
+        raise ValueError("there is no argument")
     pass
"""


def git(folder: Path, *arguments: str, date: int = 1_700_000_000) -> str:
    env = {"GIT_CONFIG_GLOBAL": "/dev/null", "PATH": "/usr/bin:/bin"}
    for who in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{who}_NAME": "a", f"GIT_{who}_EMAIL": "a@b"}
        env[f"GIT_{who}_DATE"] = f"{date} +0000"
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository whose second commit is the base and whose third is the future."""
    folder = tmp_path / "clones/owner__name"
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for number in (1, 2, 3):
        date = 1_700_000_000 + number
        (folder / "file.txt").write_text(f"{number}\n")
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"c{number}", date=date)
        git(folder, "tag", "-a", f"v{number}", "-m", "t", date=date)
    git(
        folder,
        "tag",
        "-a",
        "late-name-of-the-base",
        "-m",
        "fixed by c3",
        "HEAD~1",
        date=1_800_000_000,
    )
    return folder


def row_at(commit: str, **columns: object) -> Row:
    return Row(
        instance_id="owner__name-1",
        repo="owner/name",
        dialect="swe-bench",
        base_commit=commit,
        problem_statement="p",
        version="1.0",
    ).model_copy(update=columns)


def test_a_bundle_ends_at_its_commit(clone: Path, tmp_path: Path) -> None:
    base = git(clone, "rev-parse", "HEAD~1")
    bundle = tmp_path / "out/cut.bundle"
    write_bundle(clone, base, bundle)
    copy = tmp_path / "copy"
    git(tmp_path, "clone", "-q", "-b", "main", str(bundle), str(copy))
    assert git(copy, "log", "--all", "--format=%s").split() == ["c2", "c1"]
    assert git(copy, "rev-parse", "HEAD") == base
    future = git(clone, "rev-parse", "HEAD")
    with pytest.raises(subprocess.CalledProcessError):
        git(copy, "cat-file", "-e", future)


def test_only_tags_that_were_there_then_go_with_it(clone: Path, tmp_path: Path) -> None:
    write_bundle(clone, git(clone, "rev-parse", "HEAD~1"), tmp_path / "cut.bundle")
    refs = git(tmp_path, "bundle", "list-heads", str(tmp_path / "cut.bundle")).split()[1::2]
    assert sorted(refs) == ["refs/heads/main", "refs/tags/v1", "refs/tags/v2"]


def test_a_bundle_can_be_cut_from_a_bundle(clone: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole.bundle"
    git(clone, "bundle", "create", "-q", str(whole), "--all")
    write_bundle(whole, git(clone, "rev-parse", "HEAD~2"), tmp_path / "cut.bundle")
    refs = git(tmp_path, "bundle", "list-heads", str(tmp_path / "cut.bundle")).split()[1::2]
    assert sorted(refs) == ["refs/heads/main", "refs/tags/v1"]


def test_the_same_history_makes_the_same_bundle(clone: Path, tmp_path: Path) -> None:
    base = git(clone, "rev-parse", "HEAD~1")
    for name in ("one", "two"):
        write_bundle(clone, base, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_commit_that_is_not_there_is_named(clone: Path, tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=f"has no commit {'1' * 40}"):
        write_bundle(clone, "1" * 40, tmp_path / "cut.bundle")


def test_a_clone_is_found_under_several_names(clone: Path) -> None:
    assert find_repository(clone.parent, "owner/name") == clone
    assert find_repository(clone, "owner/name") == clone
    with pytest.raises(DefinitionError, match=r"no clone of a/b .* a__b, a__b.git, a__b.bundle"):
        find_repository(clone.parent, "a/b")


def test_which_packages_a_row_needs_is_asked_for(clone: Path, tmp_path: Path) -> None:
    recipes = Recipes(clone.parent, tmp_path / "recipes")
    row = row_at(git(clone, "rev-parse", "HEAD~1"))
    with pytest.raises(DefinitionError, match=r"which packages .*/owner__name-1.0.txt \(or"):
        recipes.write(row)
    assert Supply(recipes).label(row) == ""
    (clone.parent / "owner__name.txt").write_text("# FROM debian:bullseye\npytest==8.0.0\n")
    folder = tmp_path / "recipes" / recipes.write(row)
    dockerfile = (folder / "Dockerfile").read_text()
    assert "\nFROM debian:bullseye\n" in dockerfile
    assert {"repository.bundle", "requirements.txt"} <= {path.name for path in folder.iterdir()}


def test_other_packages_make_another_image(clone: Path, tmp_path: Path) -> None:
    recipes = Recipes(clone.parent, tmp_path / "recipes")
    base = git(clone, "rev-parse", "HEAD~1")
    names = {
        recipes.name(row_at(base, extra={"requirements": f"pytest==8.{minor}.0\n"}))
        for minor in (0, 1)
    }
    assert len(names) == 2


def test_what_a_data_set_says_does_not_reach_a_shell(clone: Path, tmp_path: Path) -> None:
    recipes = Recipes(clone.parent, tmp_path / "recipes")
    base = git(clone, "rev-parse", "HEAD~1")
    row = row_at(base, workdir="/x; reboot", extra={"requirements": "pytest==8.0.0\n"})
    with pytest.raises(DefinitionError, match="is no commit or path"):
        recipes.write(row)


@pytest.mark.parametrize("repo", ["{}/private", "../private", "a/../../private", "/"])
def test_a_repositorys_name_leads_nowhere_else(clone: Path, tmp_path: Path, repo: str) -> None:
    (tmp_path / "private/.git").mkdir(parents=True)
    with pytest.raises(DefinitionError, match="is no repository's name"):
        find_repository(clone.parent, repo.format(tmp_path))


@pytest.mark.parametrize(
    "columns",
    [
        {"instance_id": "a/../../private"},
        {"version": "/../../private"},
        {"instance_id": "\u00e9" * 200},
    ],
)
def test_a_rows_name_leads_to_no_other_file(
    clone: Path, tmp_path: Path, columns: dict[str, object]
) -> None:
    (tmp_path / "private.txt").write_text("secret")
    (clone.parent / "a").mkdir()
    (clone.parent / "owner__name-").mkdir()
    with pytest.raises(DefinitionError, match="is no file's name here"):
        Recipes(clone.parent, tmp_path / "recipes").requirements(row_at("0" * 40, **columns))


def test_without_clones_the_image_is_the_rows_own() -> None:
    row = row_at("0" * 40, image="swebench/sweb.eval.x86_64.a_1776_b-1:latest")
    assert official_name(row) == "official-swebench-sweb-eval-x86-64-a-1776-b-1-latest"
    with pytest.raises(DefinitionError, match="names no image; .* --repo-dir"):
        official_name(row_at("0" * 40))


def test_what_a_solution_leaves_is_its_sign() -> None:
    block = 'if the_argument is None:\nraise ValueError("there is no argument")\npass'
    assert signs(PATCH) == {"a.py": [block]}


def test_a_solution_that_only_deletes_has_a_sign_too() -> None:
    patch = (
        "diff --git a/b.py b/b.py\n--- a/b.py\n+++ b/b.py\n@@ -1,3 +1,2 @@\n"
        " def before_the_line(argument):\n-    wrong()\n     return argument.value\n"
    )
    assert signs(patch) == {"b.py": ["def before_the_line(argument):\nreturn argument.value"]}


def test_too_little_is_no_sign() -> None:
    assert signs("diff --git a/b.py b/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n") == {}
