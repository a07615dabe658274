"""All tools of this release, in one registry."""

from __future__ import annotations

from shared.tools import browsing
from shared.tools.agents import consult, install, messaging, models, profiles, prompt, rows, self_edit
from shared.tools.approvals import revoke, trust
from shared.tools.cluster import hooks, notifications, system
from shared.tools.files import browse, coding, edit, packages
from shared.tools.git import read, write
from shared.tools.knowledge import memory, notes, prompts, recollection
from shared.tools.projects import channels, project, removal, repositories, workspaces
from shared.tools.registry import Registry
from shared.tools.research import report, symbols
from shared.tools.sessions import listing, threads, window
from shared.tools.tasks import chains, core, lifecycle, outcome, planning, review, steering


def registry() -> Registry:
    """The registry of every worker."""
    return Registry(
        [
            core.category,
            browsing.category,
            memory.core,
            messaging.category,
            consult.category,
            read.category,
            write.category,
            project.category,
            removal.category,
            channels.category,
            workspaces.category,
            repositories.category,
            repositories.removing,
            rows.category,
            outcome.errors,
            profiles.category,
            install.category,
            hooks.category,
            notifications.category,
            notes.category,
            notes.filing,
            memory.category,
            browse.category,
            edit.category,
            system.category,
            lifecycle.category,
            chains.category,
            prompts.category,
            outcome.category,
            read.history,
            symbols.category,
            report.category,
            planning.category,
            revoke.category,
            trust.category,
            models.category,
            coding.category,
            packages.category,
            review.category,
            self_edit.category,
            steering.category,
            prompt.category,
            recollection.category,
            window.category,
            listing.category,
            threads.category,
        ]
    )


if __name__ == "__main__":  # make docs
    from shared.tools import document

    print(document.render(registry()), end="")
