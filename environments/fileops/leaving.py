"""What an agent left of a tree as a submission, and back."""

from collections.abc import Mapping
from typing import Any

from gymsuite import Submission

from .tree import Node, Tree, whole

_TREE = "tree/"


def left_of(before: Tree, found: Mapping[str, Node], script: Mapping[str, bytes]) -> Submission:
    """All that differs, with the script: files and links by path, their rights in the state."""
    known = whole(before)
    changed = {path: node for path, node in found.items() if node != known.get(path)}
    contents = {
        path: node.data
        for path, node in changed.items()
        if node.kind != "directory" and not _same_data(node, known.get(path))
    }
    return Submission(
        files={**script, **{f"{_TREE}{path}": data for path, data in contents.items()}},
        deletions=tuple(f"{_TREE}{path}" for path in sorted(known.keys() - found.keys())),
        state={"nodes": {path: [node.kind, node.mode] for path, node in changed.items()}},
    )


def _same_data(node: Node, other: Node | None) -> bool:
    return other is not None and (node.kind, node.data) == (other.kind, other.data)


def found_in(before: Tree, submission: Submission) -> Mapping[str, Node]:
    """The tree that a submission tells of."""
    tree = whole(before)
    for path in submission.deletions:
        tree.pop(path.removeprefix(_TREE), None)
    nodes: Mapping[str, Any] = submission.state.get("nodes", {})
    for path, (kind, mode) in nodes.items():
        there = tree.get(path, Node(kind, mode))
        data = submission.files.get(f"{_TREE}{path}", there.data)
        tree[path] = Node(kind, mode, b"" if kind == "directory" else data)
    return tree
