"""What git keeps of a worktree, beside its files: taken away without git, which would do it file by file."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from pathlib import Path

from shared.guard.files.git_folder import Layout, layout

GONE = ".gone"  # how the name of a worktree ends whose files are being removed


def belongs(path: Path, where: Layout | None) -> bool:
    """Whether a worktree of this repository, and not its main checkout, lies at `path`."""
    there = layout(path)
    return bool(there and where and there.common == where.common and there.folder != there.common)


def forget(path: Path, where: Layout) -> None:
    """Remove the entry of a worktree that was at `path` and is gone.

    Not by `git worktree prune`: in the sandbox git sees no other worktree, and would forget them all.
    """
    for entry in (where.common / "worktrees").glob("*/gitdir"):
        with contextlib.suppress(FileNotFoundError):  # others come and go meanwhile
            if not path.exists() and Path(entry.read_text().strip()) == path / ".git":
                shutil.rmtree(entry.parent)


def part(path: Path, where: Layout) -> Path:
    """Take a worktree out of the repository at once, whatever its size; where its files lie, to be removed.

    Who is killed in between leaves an entry that whoever comes to that path next forgets; who is killed after
    that leaves files that nothing refers to, and `parted` finds them.
    """
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}{GONE}")
    path.rename(aside)
    forget(path, where)
    return aside


def parted(folder: Path) -> list[Path]:
    """Files of worktrees below `folder` that nothing refers to any more."""
    return sorted(folder.glob(f"*/.*{GONE}"))
