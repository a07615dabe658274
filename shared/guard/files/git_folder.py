"""Where git keeps its own things for a checkout; a file that a command could have changed is not believed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_LIMIT = 4096


@dataclass(frozen=True)
class Layout:
    """`folder` is this checkout's own git folder, `common` that of the whole repository, `tree` its files."""

    folder: Path
    common: Path
    tree: Path | None


def layout(path: Path) -> Layout | None:
    """The layout of the checkout or bare repository at `path` itself; None where there is none.

    A `.git` file is followed only where the folder that it names points back to it, as git's worktrees do.
    """
    path = path.resolve()
    dot = path / ".git"
    if dot.is_symlink():
        return None
    if dot.is_dir():
        return Layout(dot, dot, path) if _looks_like(dot) else None
    if dot.is_file():
        return _linked(path, dot)
    return Layout(path, path, None) if _looks_like(path) else None


def _looks_like(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "config").is_file()


def _linked(path: Path, dot: Path) -> Layout | None:
    word = _line(dot).partition("gitdir: ")[2]
    if not word:
        return None
    folder = (path / word).resolve()
    common = folder.parent.parent
    if folder.parent.name != "worktrees" or not _looks_like(common):
        return None
    back = _line(folder / "gitdir")
    if (
        not back
        or (folder / back).resolve() != dot
        or (folder / _line(folder / "commondir")).resolve() != common
    ):
        return None
    return Layout(folder, common, path)


def _line(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="surrogateescape") as text:
            return text.read(_LIMIT).strip()
    except OSError:
        return ""


def private_folders(root: Path) -> list[Path]:
    """What no command may change: git's folders of this checkout, and the file that leads to them."""
    found = layout(root)
    dot = root / ".git"
    if found is None:
        return [dot] if dot.exists() and not dot.is_symlink() else []
    return [dot, *([found.common] if found.common != dot else [])] if found.tree else []
