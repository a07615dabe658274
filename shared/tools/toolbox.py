"""All tools of this release, in one registry."""

from __future__ import annotations

from shared.tools import (
    agents,
    chains,
    coding,
    consult,
    core,
    edit,
    files,
    git,
    gitwork,
    hooks,
    install,
    leave,
    lifecycle,
    loading,
    memory,
    messaging,
    notes,
    outcome,
    planning,
    profiles,
    project,
    prompts,
    repositories,
    research,
    review,
    selfedit,
    steering,
    symbols,
    system,
    trust,
    workspaces,
)
from shared.tools.registry import Registry


def registry() -> Registry:
    """The registry of every worker."""
    return Registry(
        [
            core.category,
            loading.category,
            memory.core,
            messaging.category,
            consult.category,
            git.category,
            gitwork.category,
            project.category,
            workspaces.category,
            repositories.category,
            repositories.removing,
            agents.category,
            outcome.errors,
            profiles.category,
            install.category,
            hooks.category,
            notes.category,
            memory.category,
            files.category,
            edit.category,
            system.category,
            lifecycle.category,
            chains.category,
            prompts.category,
            outcome.category,
            git.history,
            symbols.category,
            research.category,
            planning.category,
            leave.category,
            trust.category,
            coding.category,
            review.category,
            selfedit.category,
            steering.category,
        ]
    )


if __name__ == "__main__":  # make docs
    from shared.tools import page

    print(page.render(registry()), end="")
