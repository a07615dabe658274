"""Hooks as people look at them."""

from __future__ import annotations

import pytest

from shared.client import Client
from shared.client.views import hooks
from shared.errors import UsageError
from shared.store.records import Hook, HookRun, project_key


async def test_a_hook_says_when_it_runs_next_what_it_looks_at_and_who_allowed_that(reader: Client) -> None:
    hook = Hook(
        slug="morning", name="Morning", project_id=project_key("shop"), prompt_template="Say {{step_0}}",
        trigger={"type": "cron", "cron": "0 9 * * 1-5"}, context_steps=[{"type": "shell", "command": "git log"}],
    )  # fmt: skip
    odd = Hook(
        slug="odd", name="Odd", project_id=project_key("shop"), prompt_template="x", enabled=False,
        trigger={"type": "periodic", "interval_seconds": 5400},
    )  # fmt: skip
    run = HookRun(hook_id=hook.id, state="failed", trigger="cron", error="it broke")
    await (await reader.store()).upsert([hook, odd, run])
    found = {one.id: one for one in await hooks.hooks(reader)}
    assert found["morning"].when == "by the clock: 0 9 * * 1-5"
    assert len(found["morning"].upcoming) == 3 and found["odd"].upcoming == ()
    assert found["odd"].when == "every 90 min"
    assert [(step.kind, step.does) for step in found["morning"].steps] == [("shell", "git log")]
    assert found["morning"].allowed_by == ""
    [ran] = await hooks.runs(reader, "morning")
    assert (ran.state, ran.came_to, ran.hook) == ("failed", "it broke", "morning")
    with pytest.raises(UsageError, match="no hook"):
        await hooks.runs(reader, "nightly")
