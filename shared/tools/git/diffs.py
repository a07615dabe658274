"""Diffs as tools tell them: without what files hold that hold secrets."""

from __future__ import annotations

from shared.guard.git.commands import Git
from shared.guard.permissions import secret_files
from shared.tools.registry import Result


async def without_secrets(git: Git, diff: str, base: str, to: str = "") -> Result:
    """`{diff}`, and `left_out`, the files of which nothing is told, where there are some."""
    # Where the middle of the diff is missing, the lines behind may be those of any file that differs.
    cut = "\n[… " in diff
    secret = (
        [path for path in await git.changed_files(base, to) if secret_files.is_secret(path)] if cut else []
    )
    text, left = secret_files.without(diff, bool(secret))
    left = sorted({*left, *secret})
    return {"diff": text} | ({"left_out": [f"{path}: it holds secrets" for path in left]} if left else {})
