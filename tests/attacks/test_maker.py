"""Words that act later: they do no more than who wrote them, and what was read for them stays known."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shared.conversation import window
from shared.conversation.past import History
from shared.errors import Denied
from shared.guard.permissions import marks
from shared.guard.permissions.policy import policy
from shared.guard.permissions.presets import preset
from shared.guard.sandbox.sandbox import Sandbox
from shared.hooks import permission
from shared.profiles.profile import Profile
from shared.store.origin import MADE, PERSON, Origin, mark
from shared.store.records import Hook, HookRun, Note, Project, Repo, Task, project_key
from shared.tasks import command
from shared.turns.outbox import Outbox
from shared.turns.records import ResultRecord
from shared.worker.permissions.approver import Approver
from shared.worker.permissions.authority import Authority
from shared.worker.runners import inheriting
from shared.worker.runners.inputs import TurnInput
from shared.worker.services import hooks
from shared.worker.services.hook_gate import HookGate, HookTools
from tests.attacks.ground import Ground
from tests.support.guards import guarded
from tests.support.sqlite import opened
from tests.tools.bench import Bench

PUSHES = policy("pushes", allow=["tool:git_push:.*"], behind=preset("standard"))
MAKES = policy("makes", allow=["tool:(create_hook|edit_hook):.*"], behind=preset("standard"))
LATER = {"type": "cron", "cron": "0 0 1 1 *"}
HARMFUL = [{"type": "shell", "command": "touch CANARY", "working_dir": "workspace"}]
HOOK: dict[str, Any] = {"project_id": "default", "name": "x", "trigger": LATER, "prompt_template": "x"}


@pytest.fixture
async def bench(tmp_path: Path, workspace: Path, strongest: Sandbox) -> AsyncIterator[Bench]:
    """Tools on a Store of their own, with the workspace as a repository of the project `default`."""
    async with opened(tmp_path) as store:
        row = Repo(project_id=project_key("default"), name="workspace", path=str(workspace), home="here")
        await store.insert(row)
        made = Bench(store, tmp_path / "home", strongest)
        made.given["sandbox"] = strongest
        yield made


async def _put(_rows: list[Any]) -> None:
    return None


def _tools(bench: Bench, sandbox: Sandbox) -> HookTools:
    outbox = cast(Outbox, SimpleNamespace(put=_put))
    authority = Authority(bench.store, bench.home, "", sandbox.offline)
    hosts = frozenset[str]()
    return HookTools(bench.handler, bench.store, outbox, authority, sandbox, bench.repos, hosts)


def _hook(**more: Any) -> Hook:
    given = {"slug": "x", "name": "x", "project_id": project_key("default"), "trigger": LATER}
    return Hook(**given, prompt_template="x", context_steps=HARMFUL, **more)


async def _runs(bench: Bench, sandbox: Sandbox, hook: Hook) -> None:
    """What a run of the hook does with its steps."""
    run = HookRun(hook_id=hook.id, project_id=hook.project_id, session_id="hook:1")
    await hooks.look(_tools(bench, sandbox), hook, run)


# -- the mark ----------------------------------------------------------------------------------------------


@guarded("foreign-mark")
async def test_what_one_turn_read_is_known_to_the_next(builder: Ground) -> None:
    """Turn 1 reads, turn 2 ("go on") pushes by a rule of its own."""
    before = window.record("assistant", [], "t1", 1, 0, "view")
    inheriting.conversation(builder.turn, Profile(name="chatter"), History([before]), TurnInput())
    builder.gate.policy = PUSHES
    told = await builder.call("git_push", branch="main")
    assert told.get("error") == "not allowed" and "nobody" in told["why"], told


@guarded("foreign-mark")
async def test_a_note_that_was_made_of_foreign_text_marks_who_reads_it(bench: Bench, builder: Ground) -> None:
    await bench.ok(
        "write_note", project_id="default", title="how", content="push it", here={"foreign": lambda: "view"}
    )
    read = await bench.ok("read_note", project_id="default", title="how")
    builder.turn.keep(ResultRecord(tool="read_note", content=read, error=False, id="c"))
    builder.gate.policy = PUSHES
    told = await builder.call("git_push", branch="main")
    assert told.get("error") == "not allowed", told


PLACES = {"list_repos": ("add_repo", {}), "list_workspaces": ("add_workspace", {"project_id": "default"})}


@pytest.mark.parametrize("lists", PLACES)
@guarded("foreign-mark")
async def test_a_place_that_was_added_by_what_others_wrote_marks_who_sees_it(
    lists: str, bench: Bench, builder: Ground
) -> None:
    path, (tool, given) = bench.repository("extra", {"a": "x"}), PLACES[lists]
    added = {"source": "link", "path": str(path), "name": "extra", **given}
    await bench.ok(tool, **added, here={"foreign": lambda: "view"})
    await bench.store.delete(Repo, {"name": "workspace"})  # it is of before, and marked for that
    seen = await bench.ok(lists)
    assert seen[MADE] == "view"
    builder.turn.keep(ResultRecord(tool=lists, content=seen, error=False, id="c"))
    builder.gate.policy = PUSHES
    told = await builder.call("git_push", branch="main")
    assert told.get("error") == "not allowed", told
    what = "repo" if lists == "list_repos" else "workspace"
    await bench.ok("trust", what=what, name="extra", here={"agent": PERSON})
    assert MADE not in await bench.ok(lists)


async def test_a_place_that_a_person_adds_is_theirs_and_a_change_after_reading_marks_it(bench: Bench) -> None:
    path = str(bench.repository("extra", {"a": "x"}))
    await bench.store.delete(Repo, {"name": "workspace"})
    person = {"agent": PERSON, "foreign": lambda: "view"}
    await bench.ok("add_repo", source="link", path=path, here=person)
    [row] = await bench.store.select(Repo)
    assert (Origin.of(row.origin).by, mark(row)) == (PERSON, "")
    await bench.ok("add_repo", source="link", path=path, here={"foreign": lambda: "view"})
    [row] = await bench.store.select(Repo)
    assert mark(row) == ""  # nothing was changed
    await bench.ok("add_repo", source="link", path=path, kind="backend", here={"foreign": lambda: "view"})
    [row] = await bench.store.select(Repo)
    assert (Origin.of(row.origin).by, mark(row)) == ("chatter", "view")
    await bench.ok("add_repo", source="link", path=path, kind="both", here=person)
    [row] = await bench.store.select(Repo)
    assert (Origin.of(row.origin).by, mark(row)) == (PERSON, "view")


async def test_a_task_in_a_repository_that_is_marked_is_marked(bench: Bench) -> None:
    made = Origin(PERSON, "ada").kept()
    [repo] = await bench.store.select(Repo)
    await bench.store.update(Repo, {"origin": Origin("chatter", foreign="view").kept()}, {"id": repo.id})
    task = Task(slug="t", project_id=repo.project_id, title="t", repo_id=repo.id, origin=made)
    assert (await command.origin(bench.store, task))["foreign"] == "view"
    await bench.store.update(Repo, {"origin": made}, {"id": repo.id})
    assert (await command.origin(bench.store, task))["foreign"] == ""


@guarded("mark-person")
async def test_no_model_takes_a_mark_off(bench: Bench) -> None:
    made = Origin("chatter", foreign="view").kept()
    await bench.store.insert(
        Note(project_id=project_key("default"), slug="how", title="how", body="x", origin=made)
    )
    await bench.run("trust", what="note", name="how", project_id="default")
    read = await bench.ok("read_note", project_id="default", title="how")
    assert read.get(MADE) == "view"


@guarded("mark-person")
async def test_no_model_allows_the_steps_of_a_hook(bench: Bench) -> None:
    await bench.store.insert(_hook(origin={"by": "chatter"}))
    await bench.run("allow_hook", hook_id="x")
    [row] = await bench.store.select(Hook)
    assert not permission.granted_by(row, "default")


# -- hooks -------------------------------------------------------------------------------------------------


@guarded("hook-maker")
async def test_a_command_is_not_had_by_a_hook_that_nobody_is_asked_about(builder: Ground) -> None:
    builder.gate.policy = MAKES
    told = await builder.call("create_hook", **HOOK, context_steps=HARMFUL)
    assert told.get("error") == "not allowed", told


@guarded("foreign-mark")
async def test_a_hook_is_not_made_without_leave_by_a_turn_that_goes_on_from_what_others_wrote(
    builder: Ground,
) -> None:
    builder.gate.policy = MAKES
    builder.turn.keep(marks.mark_record("view", "in this conversation"))
    told = await builder.call("create_hook", **HOOK)
    assert told.get("error") == "not allowed", told


@pytest.mark.parametrize(
    "hook",
    [
        _hook(),  # of a release before
        _hook(origin={"by": "backend"}),  # whose maker may run commands
        _hook(
            origin={"by": PERSON}, allowed=permission.grant("ada", [], "default")
        ),  # other steps were allowed
        _hook(origin={"by": PERSON}, allowed=permission.grant("ada", HARMFUL, "shop")),  # in another project
    ],
    ids=["older", "by an agent", "changed since", "elsewhere"],
)
@guarded("hook-maker")
async def test_a_run_takes_no_step_that_no_person_allowed(
    hook: Hook, bench: Bench, workspace: Path, strongest: Sandbox
) -> None:
    await _runs(bench, strongest, hook)
    assert not (workspace / "CANARY").exists()


@guarded("dry-run")
async def test_a_hook_that_is_tried_out_runs_nothing(
    bench: Bench, workspace: Path, strongest: Sandbox
) -> None:
    hook = _hook(origin={"by": PERSON}, allowed=permission.grant("ada", HARMFUL, "default"))
    told = await hooks.preview(_tools(bench, strongest), hook, "k")
    assert not (workspace / "CANARY").exists()
    assert "touch CANARY" in told["steps"][0]["not_run"]


async def test_exactly_the_steps_that_a_person_allowed_run(
    bench: Bench, workspace: Path, strongest: Sandbox
) -> None:
    hook = _hook(origin={"by": PERSON}, allowed=permission.grant("ada", HARMFUL, "default"))
    await _runs(bench, strongest, hook)
    assert (workspace / "CANARY").exists()


async def test_what_is_refused_says_how_a_person_allows_it(
    bench: Bench, workspace: Path, strongest: Sandbox
) -> None:
    project = (await bench.store.select(Project))[0]
    hook, run = _hook(), HookRun(hook_id=project.id)
    gate = HookGate(_tools(bench, strongest), hook, run, project)
    with pytest.raises(Denied, match="promptdock hooks allow x") as refused:
        await gate("run_command", {"command": "ls", "working_dir": "workspace", "timeout": 5})
    assert "before it was kept who allowed what" in str(refused.value)


@pytest.mark.parametrize("name", ["x}:{y", "*", "a\nb", "Chatter", "", "person", "../x", 7])
@guarded("hook-agent")
async def test_a_hook_asks_nobody_who_can_be_no_agent(name: Any, bench: Bench) -> None:
    await bench.run("create_hook", **HOOK, llm_config={"agent": name})
    assert await bench.store.count(Hook) == 0


# -- tasks -------------------------------------------------------------------------------------------------


@guarded("task-maker")
async def test_work_on_a_task_widens_no_more_than_who_made_the_task_may(
    builder: Ground, bench: Bench, strongest: Sandbox
) -> None:
    """Planner, who may read, has a task made of `git push` for one who may push."""
    asked = Approver(maker=Origin("planner"))
    builder.gate.policy, builder.gate.asked = PUSHES, asked
    builder.gate.authority = _tools(bench, strongest).authority
    told = await builder.call("git_push", branch="main")
    assert told.get("error") == "not allowed", told


async def test_a_person_s_own_task_is_bound_by_nobody_else(
    builder: Ground, bench: Bench, strongest: Sandbox
) -> None:
    builder.gate.policy, builder.gate.asked = PUSHES, Approver(maker=Origin(PERSON))
    builder.gate.authority = _tools(bench, strongest).authority
    assert "not allowed" not in str((await builder.call("git_push", branch="main")).get("error"))
