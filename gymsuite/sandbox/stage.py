"""Names the pieces of one sandbox's file system, for the keeper to show and bubblewrap to mount."""

from pathlib import Path

_STAGE = "/tmp"  # noqa: S108 - a mount of the sandbox's own launcher, in a namespace of its own


class Stage:
    """Names for paths of this machine, and for what the keeper keeps; `words` tell the keeper."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._memory: dict[str, tuple[str, str]] = {}
        self._covers: list[str] = []

    def host(self, path: Path) -> str:
        """Name a path of this machine."""
        return self._name("bind", str(path))

    def program(self) -> str:
        """Name the keeper's copy of its own program, which is the exec server's as well."""
        return self.kept("exec-server")

    def kept(self, place: str) -> str:
        """Name what the keeper keeps: by its key, or a path below one."""
        return self._name("kept", place)

    def upper(self, size_bytes: int, inodes: int) -> str:
        """Name the directories in memory, of the sandbox's own, for what it writes."""
        return self._in_memory("upper", size_bytes, inodes)

    def shared(self, size_bytes: int, inodes: int) -> str:
        """Name a directory in memory, of the sandbox's own, for what its processes share."""
        return self._in_memory("shm", size_bytes, inodes)

    def cover(self, place: str, empty: str) -> None:
        """Have an empty directory lie on a place below what is named; both are names."""
        self._covers += ["cover", empty, place]

    def _in_memory(self, name: str, size_bytes: int, inodes: int) -> str:
        self._memory[name] = str(size_bytes), str(inodes)
        return f"{_STAGE}/{name}"

    def _name(self, kind: str, source: str) -> str:
        # Short, as the options of one overlay mount, with all its layers, fit in a page of memory.
        name = self._names.setdefault((kind, source), str(len(self._names)))
        return f"{_STAGE}/{name}"

    @property
    def words(self) -> list[str]:
        """Return what the keeper is told."""
        named = self._names.items()
        return [
            *(word for name, limits in self._memory.items() for word in (name, *limits)),
            *(word for (kind, path), name in named for word in (kind, name, path)),
            *self._covers,
        ]
