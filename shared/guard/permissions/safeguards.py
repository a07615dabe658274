"""What is asked whatever a profile allows: writing what configures tools; and with doubts, what leaves or lasts.

Text that came from outside cannot be trusted to be only text. What it asks for does lasting harm where it writes
files that other programs obey, where data leaves, and where something holds that outlives the turn: another folder
that is open, a budget, an approval, a schedule, an agent that is another one from then on. Profile `open` does
without this.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from shared import failpoints
from shared.guard.permissions import obeyed, secret_files
from shared.guard.permissions.policy import SHELLS
from shared.guard.permissions.touching import LASTING, TouchKind
from shared.turns.records import JournalRecord, ResultRecord

WRITERS = frozenset({"create_file", "str_replace", "write_file", "edit_file"})

# What is asked for also where a command only reads it: it holds secrets, or words that a model would obey itself.
_TOLD = re.compile(
    r"(?i)(^|/)(\.env|\.mcp\.json|claude\.md|\.claude|\.git/hooks|\.netrc|\.npmrc|\.pypirc|\.ssh|\.aws)"
)
# In journals of the release before, and of executors of their own, results are not marked.
_OUTSIDE_TOOLS = re.compile(r"consult_.*|mcp__.*|http.*|bash|run_command|view")

_GIT = re.compile(r"(.*/)?(\.git|git~1)(/.*)?")


def never(tool: str, detail: str) -> str:
    """Why a write to this path is nobody's to allow; "" where it may be asked for."""
    if failpoints.without("git-folder"):
        return ""
    path = posixpath.normpath(detail.replace("\\", "/")).rstrip(". ").casefold()
    return "nothing in .git may be written" if tool in WRITERS and _GIT.fullmatch(path) else ""


def writes_settings(tool: str, detail: str) -> str:
    """Why a write to this path, or a command with this text, is asked for; "" where it is not."""
    if failpoints.without("obeyed-files"):
        return ""
    if tool in WRITERS:
        return f"{detail} is obeyed by other programs" if obeyed.path(detail) else ""
    found = obeyed.named(detail)
    if found and not _TOLD.search(found) and obeyed.only_reads(detail):
        return ""
    return f"it names {found}, which other programs obey" if found else ""


def shows_secret(tool: str, detail: str, kinds: Iterable[TouchKind]) -> str:
    """Why a call that shows what a file of secrets holds is asked for; "" where it does not."""
    if "secret" in kinds:
        return f"{detail} holds secrets"
    found = secret_files.named(detail) if tool in SHELLS else ()
    return f"it names {', '.join(sorted(found))}, which holds secrets" if found else ""


def lasting(kinds: Iterable[TouchKind]) -> list[TouchKind]:
    """What of this cannot be taken back by forgetting the turn."""
    if failpoints.without("caution"):
        return []
    return [kind for kind in kinds if kind in LASTING]


def read_outside(records: Iterable[JournalRecord]) -> str:
    """The tool with which this turn read something that others wrote; "" where it has not."""
    for record in records:
        if not isinstance(record, ResultRecord):
            continue
        if record.foreign:
            return record.tool
        marked = bool(record.content.get("source"))
        if not record.error and (marked or _OUTSIDE_TOOLS.fullmatch(record.tool)):
            return record.tool
    return ""
