"""What tools leave behind in a checkout, and what a commit of ours leaves out of it.

Files of these names are generated wherever they lie; git is told to ignore them, below all that a repository itself
says: a `!name` in its `.gitignore` takes one back, and what git has already stays. Of other names it depends on
what stands beside them, and of new binaries on who made them.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from shared.guard.files.atomic import put
from shared.guard.sandbox.sandbox import scratch

NAMES = """
    __pycache__/ *.py[co] .pytest_cache/ .mypy_cache/ .ruff_cache/ .hypothesis/ .tox/ .nox/ .venv/ *.egg-info/ .eggs/
    .coverage .coverage.* htmlcov/ .ipynb_checkpoints/
    node_modules/ .npm/ .pnpm-store/ .next/ .nuxt/ .svelte-kit/ .parcel-cache/ .turbo/ .vite/ .nyc_output/
    .eslintcache .stylelintcache *.tsbuildinfo
    .gradle/ *.class .bundle/ .terraform/ .dart_tool/ .zig-cache/ zig-out/
    .DS_Store Thumbs.db *.swp
""".split()  # noqa: SIM905
# Folders of which some repositories keep a copy: what is new in one that git has files of is work like any other.
_KEPT = frozenset(name.rstrip("/") for name in NAMES if name.endswith("/") and "*" not in name) - {
    "__pycache__"
}
# A folder of this name is generated beside one of these files, where git has nothing in it.
_BUILT = {
    "target": ("Cargo.toml", "pom.xml", "build.sbt"),
    "build": (
        *("pyproject.toml", "setup.py", "setup.cfg", "build.gradle", "build.gradle.kts"),
        *("CMakeLists.txt", "meson.build", "pubspec.yaml"),
    ),
    "dist": ("pyproject.toml", "setup.py", "setup.cfg", "package.json"),
    "coverage": ("package.json",),
    "vendor": ("composer.lock",),
    "_build": ("mix.exs", "dune-project"),
    "deps": ("mix.lock",),
    "bin": ("*.csproj", "*.fsproj"),
    "obj": ("*.csproj", "*.fsproj"),
}
# A folder that holds one of these was made by a tool, which says so itself.
_SIGNED = {"CACHEDIR.TAG": b"Signature: 8a477f597d28d172789f06886806bc55", "pyvenv.cfg": b""}
_LOOKED = 8000  # bytes of a file in which git looks for a NUL, too


def file() -> Path:
    """The names, as git reads them; in a folder that is ours alone."""
    text = "\n".join(NAMES) + "\n"
    place = scratch() / "leftovers"
    try:
        if place.read_text() == text:
            return place
    except OSError:
        pass
    put(place, text)
    return place


def kept(tracked: Iterable[str]) -> list[str]:
    """The folders of our list that git has files of, from the names of those files."""
    found = set()
    for name in tracked:
        parts = PurePosixPath(name).parts[:-1]
        at = next((at for at, part in enumerate(parts) if part in _KEPT), None)
        if at is not None:
            found.add("/".join(parts[: at + 1]))
    return sorted(found)


class Generated:
    """Judges new files of a checkout, in which git has the files `tracked`."""

    def __init__(self, root: Path, tracked: Iterable[str]) -> None:
        self._root = root
        self._folders: dict[str, bool] = {}
        self._tracked = set(tracked)
        self._known = {str(parent) for name in self._tracked for parent in PurePosixPath(name).parents}
        self._kinds = {PurePosixPath(name).suffix.lower() for name in self._tracked} - {""}

    def leftover(self, path: str) -> bool:
        """Whether it lies in a folder that a tool made, of which git has nothing."""
        return any(self._built(str(folder)) for folder in list(PurePosixPath(path).parents)[:-1])

    def binary(self, path: str) -> bool:
        """Whether it is a binary of a kind that the repository has none of."""
        return PurePosixPath(path).suffix.lower() not in self._kinds and is_binary(self._root / path)

    def _built(self, folder: str) -> bool:
        if folder not in self._folders:
            self._folders[folder] = folder not in self._known and self._made(self._root / folder)
        return self._folders[folder]

    def _made(self, folder: Path) -> bool:
        if any(_begins(folder / name, sign) for name, sign in _SIGNED.items()):
            return True
        return any(any(folder.parent.glob(name)) for name in _BUILT.get(folder.name, ()))


def doubtful(root: Path, fresh: Iterable[str]) -> bool:
    """Whether any of these new files needs a closer look, for which git is asked what it has."""
    seen: dict[str, bool] = {}

    def suspect(folder: str) -> bool:
        if folder not in seen:
            there = root / folder
            seen[folder] = there.name in _BUILT or any((there / name).exists() for name in _SIGNED)
        return seen[folder]

    return any(
        any(suspect(str(folder)) for folder in list(PurePosixPath(path).parents)[:-1])
        or is_binary(root / path)
        for path in fresh
    )


def is_binary(file: Path) -> bool:
    """Whether git takes it for one."""
    try:
        if not stat.S_ISREG(file.lstat().st_mode):
            return False
        with file.open("rb") as opened:
            return b"\0" in opened.read(_LOOKED)
    except OSError:
        return False


def _begins(file: Path, sign: bytes) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(len(sign)) == sign
    except OSError:
        return False
