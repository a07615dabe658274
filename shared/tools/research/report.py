"""Tools of category research: report findings with citations that are checked, and compare repositories.

A claim counts only with the line that shows it: the harness reads the file, and a citation whose line does
not hold the quoted text is refused with what really stands there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field

from shared.errors import ToolError
from shared.guard.files.jail import Jail
from shared.guard.permissions.touching import touching
from shared.tools import checkouts
from shared.tools.context import Context, Root
from shared.tools.paths import read_lines
from shared.tools.registry import Category, Result
from shared.tools.research.conflicts import Citation, SourceConflict, detect_conflicts

category = Category("research", "Report findings with checked citations, and compare repositories")

_NEAR = 3  # places that are named where a quoted text does stand
C = TypeVar("C", bound=Citation)
_SIDES: tuple[Literal["frontend", "backend"], ...] = ("frontend", "backend")
_VISIBLE = re.compile(
    r"\.(?:tsx|jsx|vue|svelte|css|scss|html?)$|(?:^|/)(?:frontend|client|web|ui|components|pages)/"
)


class ResearchFinding(Citation):
    """A claim and the line that shows it; `area` says what it is about, e.g. `auth`."""

    claim: str = Field(min_length=1, max_length=4000)
    area: str | None = None


class Report(BaseModel, defer_build=True):
    """What a research came to, all citations checked."""

    findings: list[ResearchFinding]
    conflicts: list[SourceConflict] = []
    recommendations: list[str] = []
    confidence: float = Field(ge=0, le=1)


@category.tool(effect="pure", touches=touching("records"))
async def report_findings(
    context: Context,
    findings: list[ResearchFinding],
    confidence: Annotated[float, Field(ge=0, le=1)],
    conflicts: tuple[SourceConflict, ...] = (),
    recommendations: tuple[str, ...] = (),
) -> Result:
    """Hand in the result of the research; call it once, at the end.

    Each finding quotes (`text`) what stands on `line` of `file` in `repo`; each side of a conflict likewise.
    Citations are checked: where one is wrong the answer says what really stands there, correct it and call
    again. `confidence` is from 0 to 1.
    """
    report = Report(
        findings=findings,
        conflicts=list(conflicts),
        recommendations=list(recommendations),
        confidence=confidence,
    )
    checked = await asyncio.to_thread(check, report, context.roots)
    return {"accepted": True, "citations": len(_citations(checked)), "report": checked.model_dump()}


@category.tool(effect="pure", touches=touching("files"))
async def find_conflicts(context: Context) -> Result:
    """Compare the frontend and backend repositories and list where they do not agree.

    Routes defined twice, calls that no route serves, dependencies at different majors, and types of the same
    name whose fields differ. It reads the source only, so what is computed at run time is not seen.
    """
    if not context.roots:
        context.locate("")
    found = await detect_conflicts(context.roots, checkouts.sandbox(context))
    return {"conflicts": [conflict.model_dump() for conflict in found], "source": "repository"}


def check(report: Report, roots: Mapping[str, Root]) -> Report:
    """The report with its files named from their repository; ToolError that lists every wrong citation."""
    texts: dict[tuple[str, str], list[str]] = {}
    wrong: list[str] = []
    for citation in _citations(report):
        if told := _wrong(citation, roots, texts):
            wrong.append(told)
    if wrong:
        more = f"; and {len(wrong) - 20} more" if len(wrong) > 20 else ""
        raise ToolError(
            f"{len(wrong)} of {len(_citations(report))} citations are wrong, nothing was reported",
            "; ".join(wrong[:20]) + more,
            "read those lines, correct file, line and text, and call report_findings again",
        )
    findings = [_placed(finding, roots) for finding in report.findings]
    conflicts = [
        conflict.model_copy(
            update={
                "left": _placed(conflict.left, roots),
                "right": conflict.right and _placed(conflict.right, roots),
            }
        )
        for conflict in report.conflicts
    ]
    return report.model_copy(update={"findings": findings, "conflicts": conflicts})


def _citations(report: Report) -> list[Citation]:
    sides = (side for conflict in report.conflicts for side in (conflict.left, conflict.right) if side)
    return [*report.findings, *sides]


def _placed(citation: C, roots: Mapping[str, Root]) -> C:
    """The citation with its file relative to the repository, also where its name stood in front."""
    file = citation.file.removeprefix("./")
    inner = file.removeprefix(f"{citation.repo}/")
    root = roots.get(citation.repo)
    if root and inner != file and Jail(root.path).exists(file):
        inner = file
    return citation.model_copy(update={"file": inner})


def _wrong(citation: Citation, roots: Mapping[str, Root], texts: dict[tuple[str, str], list[str]]) -> str:
    """What is wrong with a citation, and what stands there; empty where it is right. `texts` is a cache."""
    where = f"{citation.repo}/{citation.file}:{citation.line}"
    root = roots.get(citation.repo)
    if root is None:
        return f"{where}: there is no repository {citation.repo!r}, there are {', '.join(roots) or 'none'}"
    try:
        file = _placed(citation, roots).file
        if (root.name, file) not in texts:
            texts[root.name, file] = read_lines(root, file)
    except ToolError as error:
        return f"{where}: {error}"
    lines = texts[root.name, file]
    if citation.line > len(lines):
        return f"{where}: the file has {len(lines)} lines"
    quoted = _plain(citation.text)
    if quoted and quoted in _plain(_standing(lines, citation)):
        return ""
    text = f"{where} reads {lines[citation.line - 1].strip()[:200]!r}, not {citation.text.strip()[:200]!r}"
    places = [str(n) for n, line in enumerate(lines, 1) if quoted and quoted in _plain(line)][:_NEAR]
    return f"{text} (that stands on line {', '.join(places)})" if places else text


def _standing(lines: list[str], citation: Citation) -> str:
    """The cited line, and those after it where the quoted text has several."""
    count = citation.text.strip().count("\n") + 1
    return "\n".join(lines[citation.line - 1 : citation.line - 1 + count])


def _plain(text: str) -> str:
    return " ".join(text.split())


def answer(report: Report, roots: Mapping[str, Root]) -> dict[str, Any]:
    """The payload of a Researcher's answer to a checked report.

    `findings` is text by kind of repository, one line `claim (repo/file:line)` each; `citations` are the same
    findings as objects; `commits` says what was read, by repository.
    """
    sides: dict[str, list[str]] = {side: [] for side in _SIDES}
    for finding in report.findings:
        sides[_side(finding, roots)].append(
            f"{_plain(finding.claim)} ({finding.repo}/{finding.file}:{finding.line})"
        )
    return {
        "findings": {side: "\n".join(lines) or "No findings." for side, lines in sides.items()},
        "citations": [finding.model_dump(exclude_none=True) for finding in report.findings],
        "conflicts": [conflict.model_dump(exclude_none=True) for conflict in report.conflicts],
        "recommendations": list(report.recommendations),
        "recommendation": "\n".join(report.recommendations),
        "confidence": report.confidence,
        "commits": {name: root.commit for name, root in roots.items() if root.commit},
    }


def _side(finding: ResearchFinding, roots: Mapping[str, Root]) -> str:
    """Under which kind of repository a finding stands; in one that holds both, its path decides."""
    root = roots.get(finding.repo)
    if root is not None and root.kind in _SIDES:
        return root.kind
    return "frontend" if _VISIBLE.search(finding.file) else "backend"
