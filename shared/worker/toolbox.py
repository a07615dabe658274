"""All tools of this release, in one registry."""

from __future__ import annotations

from shared.tools import (
    chains,
    coding,
    consult,
    core,
    files,
    git,
    lifecycle,
    loading,
    messaging,
    outcome,
    planning,
    project,
    prompts,
    research,
    symbols,
    system,
)
from shared.tools.registry import Registry


def registry() -> Registry:
    """The registry of every worker."""
    return Registry(
        [
            core.category,
            loading.category,
            messaging.category,
            consult.category,
            project.category,
            system.category,
            lifecycle.category,
            chains.category,
            prompts.category,
            outcome.category,
            outcome.errors,
            files.category,
            git.category,
            git.history,
            symbols.category,
            research.category,
            planning.category,
            coding.category,
        ]
    )
