"""All tools of this release, in one registry."""

from __future__ import annotations

from shared.tools import coding, consult, core, files, git, planning, project, research, symbols, system
from shared.tools.registry import Registry


def registry() -> Registry:
    """The registry of every worker."""
    return Registry(
        [
            core.category,
            consult.category,
            project.category,
            system.category,
            files.category,
            git.category,
            symbols.category,
            research.category,
            planning.category,
            coding.category,
        ]
    )
