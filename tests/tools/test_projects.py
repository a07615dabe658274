"""Projects, their channels, repositories and workspaces."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shared.store.origin import PERSON, Origin
from shared.store.records import (
    Channel,
    Memory,
    Note,
    Project,
    Repo,
    Task,
    TaskEvent,
    TaskResult,
    TokenUsage,
    Workspace,
    project_key,
)
from shared.store.row import now
from shared.tools import catalog, describe
from tests.tools.bench import Bench
from tests.tools.ground import commit, git, write


async def _listed(bench: Bench) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in (await bench.ok("list_projects"))["projects"]}


async def test_a_project_is_made_once_with_a_folder_of_its_own(bench: Bench) -> None:
    made = await bench.twice("create_project", name="My  Große Shop!", credit_weight=2.5)
    assert made["created"] == "my-grosse-shop"
    assert bench.home.joinpath("workspaces", "my-grosse-shop").is_dir()
    told = (await _listed(bench))["my-grosse-shop"]
    assert (told["name"], told["credit_weight"], told["status"]) == ("My  Große Shop!", 2.5, "ACTIVE")
    assert "already" in await bench.no("create_project", name="my grosse shop")
    assert "letter" in await bench.no("create_project", name="***")
    assert "cannot take" in await bench.no("create_project", name="x", credit_weight=0)


async def test_a_project_with_a_url_has_its_repository(bench: Bench) -> None:
    url = git(bench.repository("web", {"a.ts": "x\n"}), "remote", "get-url", "origin")
    assert (await bench.twice("create_project", name="Web", repo_url=f"file://{url}"))["repo"] == "web"
    [repo] = (await bench.ok("list_repos", project_id="web"))["repos"]
    assert (repo["name"], repo["default_branch"], repo["path"]) == ("web", "main", None)


async def test_the_repository_of_a_new_project_keeps_who_added_it(bench: Bench) -> None:
    path = str(bench.repository("web", {"a.ts": "x\n"}))
    await bench.ok("create_project", name="Web", repo_url=path, here={"agent": PERSON})
    [repo] = await bench.store.select(Repo)
    assert Origin.of(repo.origin).by == PERSON and not Origin.of(repo.origin).foreign
    read = {"foreign": lambda: "view"}
    other = str(bench.repository("api", {"a.py": "x\n"}))
    await bench.ok("create_project", name="Api", repo_url=other, here=read)
    [repo] = await bench.store.select(Repo, {"name": "api"})
    assert Origin.of(repo.origin).foreign == "view"


async def test_a_project_whose_repository_is_refused_is_not_made(bench: Bench) -> None:
    empty = bench.home.parent / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    assert "no commit yet" in await bench.no("create_project", name="Web", repo_url=str(empty))
    assert "no commit yet" in await bench.no("add_repo", source="link", path=str(empty))
    assert "web" not in await _listed(bench)


async def test_a_project_is_paused_resumed_and_edited(bench: Bench) -> None:
    await bench.ok("create_project", name="Shop")
    assert (await bench.twice("pause_project", project_id="shop"))["paused"] == "shop"
    assert "paused" in (await bench.ok("create_task", title="x", project_id="shop"))["warning"]
    assert (await bench.twice("resume_project", project_id="shop"))["resumed"] == "shop"
    await bench.ok("create_profile", id="careful", name="Careful")
    told = await bench.ok(
        "edit_project", project_id="shop", name="Market", budget_limit=20, default_profile_id="careful",
        discord_channel_id="123",
    )  # fmt: skip
    assert told["fields"] == ["name", "budget_limit", "default_profile_id", "discord_channel_id"]
    [row] = await bench.store.select(Project, {"slug": "shop"})
    assert (row.name, row.budget, row.default_profile_id is None) == ("Market", 20.0, False)
    await bench.ok("edit_project", project_id="shop", default_profile_id=None, discord_channel_id=None)
    assert (await bench.ok("get_project_channels", project_id="shop"))["channel_id"] is None
    assert "at least one" in await bench.no("edit_project", project_id="shop")
    for tool in (
        "pause_project",
        "resume_project",
        "archive_project",
        "get_project_channels",
        "delete_project",
    ):
        assert "no project called 'nothing'" in await bench.no(tool, project_id="nothing")


async def test_an_archived_project_keeps_all_and_begins_nothing_until_it_is_resumed(bench: Bench) -> None:
    await bench.ok("create_project", name="Shop")
    await bench.ok("edit_project", project_id="shop", description="Sells plants")
    task = await bench.ok("create_task", title="x", project_id="shop")
    await bench.ok("set_active_project", project_id="shop")
    [row] = await bench.store.select(Task, {"slug": task["created"]})
    await bench.store.update(Task, {"status": "IN_PROGRESS"}, {"id": row.id})
    assert f"in progress: {row.slug}" in await bench.no("archive_project", project_id="shop")
    assert f"in progress: {row.slug}" in await bench.no("delete_project", project_id="shop")
    await bench.store.update(Task, {"status": "READY"}, {"id": row.id})
    assert (await bench.twice("archive_project", project_id="shop"))["archived"] == "shop"
    told = (await _listed(bench))["shop"]
    assert (told["status"], told["description"]) == ("ARCHIVED", "Sells plants")
    [setting] = await bench.store.select(_settings(), {"scope": "session:talk", "key": "active_project"})
    assert setting.value == {"project": None}, "nobody works there any more"
    assert "archived" in (await bench.ok("create_task", title="y", project_id="shop"))["warning"]
    assert await bench.store.count(Task, {"project_id": project_key("shop")}) == 2
    await bench.ok("resume_project", project_id="shop")
    assert (await _listed(bench))["shop"]["status"] == "ACTIVE"
    assert "always there" in await bench.no("archive_project", project_id="default")


async def test_the_default_branch_of_a_project_is_that_of_its_repositories(bench: Bench) -> None:
    path = await bench.linked()
    told = await bench.ok("set_default_branch", project_id="default", branch="develop")
    assert told["warning"] == "not there yet in: shop"
    git(path, "branch", "develop")
    assert "warning" not in await bench.ok("set_default_branch", project_id="default", branch="develop")
    assert (await bench.ok("list_repos"))["repos"][0]["default_branch"] == "develop"
    await bench.ok("edit_project", project_id="default", repo_default_branch="main")
    assert (await _listed(bench))["default"]["default_branch"] == "main"
    assert "no branch name" in await bench.no("set_default_branch", project_id="default", branch="--all")


async def test_a_project_has_one_channel_which_leads_back_to_it(bench: Bench) -> None:
    await bench.ok("create_project", name="Shop")
    assert (await bench.ok("set_project_channel", project_id="shop", channel_id="42"))["status"] == "linked"
    assert (await bench.ok("get_project_for_channel", channel_id="42"))["project_id"] == "shop"
    await bench.store.insert(Channel(surface="discord", channel_id="43", name="builds"))
    await bench.ok("set_control_interface", project_id="shop", channel_name="#builds")
    assert (await bench.ok("get_project_channels", project_id="shop"))["channel_id"] == "43"
    assert (await bench.ok("get_project_for_channel", channel_id="42"))["project_id"] is None
    assert (await _listed(bench))["shop"]["discord_channel_id"] == "43"
    assert "numbers" in await bench.no("set_project_channel", project_id="shop", channel_id="../x")
    assert "not known" in await bench.no("set_control_interface", project_id="shop", channel_name="#no")


async def test_the_active_project_is_kept_for_the_conversation(bench: Bench) -> None:
    await bench.ok("create_project", name="Shop")
    assert (await bench.ok("set_active_project", project_id="shop"))["active_project"] == "shop"
    [setting] = await bench.store.select(_settings(), {"scope": "session:talk", "key": "active_project"})
    assert setting.value == {"project": "shop"}
    assert (await bench.ok("set_active_project"))["active_project"] is None
    assert "no project" in await bench.no("set_active_project", project_id="other")


def _settings() -> Any:
    from shared.store.records import Setting

    return Setting


async def test_a_project_is_deleted_with_all_that_belongs_to_it(bench: Bench) -> None:
    await bench.ok("create_project", name="Shop")
    made = (await bench.ok("create_task", title="x", project_id="shop"))["created"]
    [task] = await bench.store.select(Task, {"slug": made})
    await bench.ok("write_note", project_id="shop", title="a", content="b")
    await bench.ok("set_project_channel", project_id="shop", channel_id="9")
    own = project_key("shop")
    await bench.store.upsert(
        [
            TaskResult(task_id=task.id, summary="x"),
            TokenUsage(agent="a", model="m", task_id=task.id),
            Memory(kind="fact", body="x", project_id=own),
        ]
    )
    await bench.ok("set_task_status", task_id=made, status="IN_PROGRESS")
    assert made in await bench.no("delete_project", project_id="shop")
    await bench.ok("set_task_status", task_id=made, status="READY")
    told = await bench.ok("delete_project", project_id="shop", archive_channels=True)
    assert (told["deleted"], told["channel_ids"], told["archive_channels"]) == ("shop", ["9"], True)
    for kind in (Task, TaskResult, TokenUsage, Memory, Note):
        assert await bench.store.count(kind) == 0, kind
    [event] = await bench.store.select(TaskEvent)
    assert event.event == "project_deleted"
    assert "always there" in await bench.no("delete_project", project_id="default")


async def test_a_deleted_project_takes_merged_branches_along_and_names_those_with_work(bench: Bench) -> None:
    path = bench.repository("shop", {"a.txt": "x\n"})
    await bench.ok("create_project", name="Shop", repo_url=str(path))
    [repo] = await bench.store.select(Repo)
    for name in ("in", "out"):
        branch = f"promptdock/calm-{name}"
        git(path, "switch", "-q", "-c", branch, "main")
        write(path, {f"{name}.txt": "y\n"})
        commit(path, f"Do {name}")
        task = Task(
            slug=f"calm-{name}", project_id=repo.project_id, repo_id=repo.id, branch=branch, title="x"
        )
        await bench.store.insert(task.model_copy(update={"status": "COMPLETED"}))
        git(path, "switch", "-q", "main")
    await bench.ok("merge_task", task_id="calm-in", here={"agent": PERSON})
    [question, work] = await describe.call(
        bench.context(), catalog.registry().get("delete_project"), {"project_id": "shop"}, {}
    )
    assert "delete the project shop" in question and work.endswith("stays on its branches: calm-out")
    told = await bench.twice("delete_project", project_id="shop")
    assert told["branches_kept"] == {str(path): ["promptdock/calm-out"]} and "files_kept" not in told
    assert git(path, "branch", "--list", "promptdock/*", "--format=%(refname:short)") == "promptdock/calm-out"
    assert not bench.home.joinpath("workspaces", "shop").exists(), "it was empty"


async def test_repositories_are_registered_by_link_clone_and_init(bench: Bench) -> None:
    path = await bench.linked()
    url = "file://" + git(path, "remote", "get-url", "origin")
    assert (await bench.twice("add_repo", source="clone", url=url, name="mirror"))["name"] == "mirror"
    made = await bench.twice("add_repo", source="init", name="Fresh One")
    assert (
        git(bench.home / "workspaces" / "default" / "fresh-one", "log", "--format=%s")
        == "Start the repository"
    )
    assert made["source_type"] == "init"
    rows = await bench.store.select(Repo)
    assert sorted(row.name for row in rows) == ["Fresh One", "mirror", "shop"]
    other = bench.repository("other", {"a": "b\n"})
    assert "called 'shop' already" in await bench.no("add_repo", source="link", path=str(other), name="shop")
    assert "registered already, as 'shop'" in await bench.no(
        "add_repo", source="link", path=str(path), name="b"
    )
    assert "data folder" in await bench.no("add_repo", source="init", path="/tmp/promptdock-elsewhere")
    assert "needs a url" in await bench.no("add_repo", source="clone")
    assert "no folder" in await bench.no("add_repo", source="link", path="/nowhere/at/all")
    assert "helpers" in await bench.no("add_repo", source="clone", url="ext::touch")


@pytest.fixture
async def cloned(bench: Bench) -> Bench:
    """A linked repository with two workspaces: a clone and a link."""
    path = await bench.linked()
    await bench.twice("add_workspace", project_id="default", source="clone", name="one")
    git(path, "clone", "--quiet", git(path, "remote", "get-url", "origin"), str(path.parent / "two"))
    await bench.twice("add_workspace", project_id="default", source="link", path=str(path.parent / "two"))
    return bench


async def test_workspaces_are_clones_and_links_in_which_one_can_work(cloned: Bench) -> None:
    told = (await cloned.ok("list_workspaces"))["workspaces"]
    assert [(row["id"], row["source"], row["locked"]) for row in told] == [
        ("one", "clone", False),
        ("two", "link", False),
    ]
    await cloned.ok("write_file", path="one/app.py", content="changed\n")
    assert (await cloned.ok("git_commit", message="Change", workspace="one"))["committed"] is True
    assert (await cloned.ok("read_file", path="two/app.py"))["content"] == "one\ntwo"
    assert "another name" in await cloned.no(
        "add_workspace",
        project_id="default",
        source="link",
        path=str(cloned.home.parent / "work/shop"),
        name="one",
    )
    for name in ("one", "shop"):
        assert "already" in await cloned.no("add_workspace", project_id="default", source="clone", name=name)
    made = await cloned.twice("add_workspace", project_id="default", source="clone")
    assert (made["created"], len((await cloned.ok("list_workspaces"))["workspaces"])) == ("shop-3", 3)
    assert "workspace called 'one'" in await cloned.no("add_repo", source="init", name="one")
    await cloned.ok("create_project", name="Empty")
    assert "no repository" in await cloned.no("add_workspace", project_id="empty", source="clone")


async def test_a_locked_workspace_is_released_by_force(cloned: Bench) -> None:
    [row] = await cloned.store.select(Workspace, {"name": "one"})
    lock = {"agent": "backend", "lease_until": now() + timedelta(hours=1), "epoch": 3}
    await cloned.store.update(Workspace, lock, {"id": row.id})
    assert "a task works in it" in await cloned.no("write_file", path="one/app.py", content="no")
    assert "backend" in await cloned.no("remove_workspace", workspace_id="one")
    skipped = (await cloned.ok("sync_workspaces"))["workspaces"][0]
    assert (skipped["workspace_id"], skipped["status"]) == ("one", "skipped")
    assert (await cloned.twice("release_workspace", workspace_id="one"))["was_locked_by"] == "backend"
    [free] = await cloned.store.select(Workspace, {"name": "one"})
    assert (free.agent, free.lease_until, free.epoch) == (None, None, 4)


async def test_workspaces_are_brought_to_the_newest_commit_without_losing_any(cloned: Bench) -> None:
    two = cloned.home.parent / "work" / "two"
    shop = cloned.home.parent / "work" / "shop"
    write(shop, {"app.py": "newer\n"})
    commit(shop, "newer")
    git(shop, "push", "--quiet", "origin", "main")
    told = {row["workspace_id"]: row["status"] for row in (await cloned.ok("sync_workspaces"))["workspaces"]}
    assert told == {"one": "updated", "two": "updated"}
    assert (two / "app.py").read_text() == "newer\n"
    write(two, {"app.py": "mine\n"})
    commit(two, "mine")
    write(shop, {"app.py": "newest\n"})
    commit(shop, "newest")
    git(shop, "push", "--quiet", "origin", "main")
    told = {row["workspace_id"]: row["status"] for row in (await cloned.ok("sync_workspaces"))["workspaces"]}
    assert told == {"one": "updated", "two": "diverged"}
    assert (two / "app.py").read_text() == "mine\n"


async def test_branches_that_conflict_with_the_default_one_are_found(cloned: Bench) -> None:
    two = cloned.home.parent / "work" / "two"
    assert (await cloned.ok("find_merge_conflict_workspaces"))["conflicts"] == []
    git(two, "switch", "--quiet", "-c", "feature")
    write(two, {"app.py": "theirs\n"})
    commit(two, "theirs")
    git(two, "switch", "--quiet", "main")
    write(two, {"app.py": "ours\n"})
    commit(two, "ours")
    told = await cloned.ok("find_merge_conflict_workspaces", project_id="default")
    assert told["conflicts"] == [
        {"workspace_id": "two", "base": "main", "branches": [{"branch": "feature", "files": ["app.py"]}]}
    ]
    assert told["scanned"] == 2


async def test_a_removed_workspace_takes_its_clone_along_but_never_work_that_is_nowhere_else(
    cloned: Bench,
) -> None:
    await cloned.ok("write_file", path="one/new.py", content="x\n")
    assert "nowhere else" in await cloned.no("remove_workspace", workspace_id="one")
    await cloned.ok("git_create_branch", branch_name="kept", workspace="one")
    await cloned.ok("git_commit", message="Keep", workspace="one")
    assert "nowhere else" in await cloned.no("remove_workspace", workspace_id="one")
    await cloned.ok("git_push", workspace="one")
    folder = cloned.home / "workspaces" / "default" / "one"
    assert (await cloned.ok("remove_workspace", workspace_id="one"))["files_removed"] is True
    assert not folder.exists()
    assert (await cloned.ok("remove_workspace", workspace_id="two"))["files_removed"] is False
    assert (cloned.home.parent / "work" / "two" / "app.py").exists()
    assert "no workspace" in await cloned.no("remove_workspace", workspace_id="one")


async def test_a_repository_is_named_by_its_name_key_or_path_and_what_is_wrong_lists_those_there_are(
    bench: Bench,
) -> None:
    path = await bench.linked("shop")
    await bench.linked("site")
    [row] = await bench.store.select(Repo, {"name": "shop"})
    for given in ("shop", "SHOP", str(row.id), str(path), f"{path}/"):
        assert (await bench.ok("create_task", title="x", repo_id=given))["repo_id"] == "shop"
        assert (await bench.ok("git_log", repo_id=given))["workspace"] == "shop"
        assert (await bench.ok("git_log", workspace=given))["workspace"] == "shop"
    assert (await bench.ok("run_command", command="ls", working_dir=str(path)))["stdout"] == "app.py\ndocs\n"
    refused = await bench.no("create_task", title="x", repo_id="shopp")
    assert "there are: shop, site" in refused and "Did you mean 'shop'?" in refused
    assert "there are: shop, site" in await bench.no("read_file", path="nothing/a.py")
    assert "Write 'shop/app.py'" in await bench.no("read_file", path=f"{path}/app.py")


async def test_a_repository_of_another_project_is_refused_with_the_way_there(bench: Bench) -> None:
    await bench.linked("shop")
    await bench.ok("create_project", name="Garden")
    beds = bench.repository("beds", {"a.md": "x\n"})
    await bench.ok("add_repo", source="link", path=str(beds), project_id="garden")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("create_task", {"title": "x", "repo_id": "beds"}),
        ("git_log", {"repo_id": "beds"}),
        ("git_log", {"workspace": str(beds)}),
        ("read_file", {"path": "beds/a.md"}),
        ("run_command", {"command": "ls", "working_dir": "beds"}),
    ]
    for tool, arguments in calls:
        told = await bench.no(tool, **arguments)
        assert "belongs to project 'garden'" in told and "promptdock project use garden" in told, told
    made = await bench.ok("create_task", title="x", repo_id="beds", project_id="garden")
    assert (made["repo_id"], made["project_id"]) == ("beds", "garden")
    assert (await bench.ok("git_log", repo_id="beds", project_id="garden"))["workspace"] == "beds"
    assert (await bench.ok("read_file", path="garden/beds/a.md"))["content"] == "x"
    assert (await bench.ok("read_file", path="shop/app.py"))["content"] == "one\ntwo"


async def test_adding_a_repository_again_keeps_what_is_not_given_and_says_what_changed(bench: Bench) -> None:
    path = bench.repository("shop", {"app.py": "one\n"})
    made = await bench.twice("add_repo", source="link", path=str(path), kind="backend", push_tasks=True)
    assert (made["created"], made["kind"], made["push_tasks"]) == ("shop", "backend", True)
    again = await bench.ok("add_repo", source="link", path=str(path))
    assert (again["updated"], again["changed"], again["kind"]) == ("shop", {}, "backend")
    changed = await bench.twice("add_repo", source="link", path=str(path), kind="frontend")
    assert (changed["changed"], changed["push_tasks"]) == ({"kind": "frontend"}, True)
    [row] = await bench.store.select(Repo)
    assert (row.kind, row.push_tasks) == ("frontend", True)
    events = [event.event for event in await bench.store.select(TaskEvent)]
    assert sorted(events) == ["project_repo_added", "project_repo_changed"]


async def test_a_repository_is_taken_out_of_its_project_and_a_persons_folder_stays(bench: Bench) -> None:
    path = await bench.linked("shop")
    task = (await bench.ok("create_task", title="x", repo_id="shop"))["created"]
    assert task in await bench.no("remove_repo", repo_id="shop")
    await bench.ok("delete_task", task_id=task)
    told = await bench.twice("remove_repo", repo_id=str(path))
    assert told == {"removed": "shop", "project_id": "default", "files_kept": str(path)}
    assert (path / "app.py").exists() and (await bench.ok("list_repos"))["repos"] == []
    await bench.ok("create_project", name="Garden")
    assert (await bench.ok("add_repo", source="link", path=str(path), project_id="garden"))[
        "created"
    ] == "shop"
    for project in ("default", None):
        told_no = await bench.no("add_repo", source="link", path=str(path), project_id=project)
        assert "belongs to project 'garden' already, as 'shop'" in told_no
        assert "promptdock repo remove shop --project garden" in told_no
    assert "belongs to project 'garden'" in await bench.no("remove_repo", repo_id="shop")


async def test_a_mirror_goes_with_its_repository_but_not_commits_that_are_nowhere_else(bench: Bench) -> None:
    url = f"file://{git(bench.repository('web', {'a.ts': 'x'}), 'remote', 'get-url', 'origin')}"
    await bench.ok("add_repo", source="clone", url=url)
    [mirror] = (bench.home / "mirrors").glob("web-*.git")
    assert (await bench.ok("read_file", path="web/a.ts"))["content"] == "x"
    tree = git(mirror, "rev-parse", "origin/main^{tree}")
    lost = git(mirror, "commit-tree", "-p", "origin/main", "-m", "work", tree)
    git(mirror, "update-ref", "refs/heads/promptdock/calm-otter", lost)
    assert "nowhere else: promptdock/calm-otter" in await bench.no("remove_repo", repo_id="web")
    assert (await bench.twice("remove_repo", repo_id=url, force=True))["files_removed"] is True
    assert list((bench.home / "mirrors").iterdir()) == []
    assert not list((bench.home / "reading").glob("web-*/*"))


async def test_a_url_that_cannot_be_mirrored_leaves_nothing_behind(bench: Bench) -> None:
    await bench.no("add_repo", source="clone", url=f"file://{bench.home}/nothing.git")
    assert list((bench.home / "mirrors").iterdir()) == []
    assert (await bench.ok("list_repos"))["repos"] == []


async def test_the_default_branch_and_profile_of_a_project_hold_for_what_is_made_there(bench: Bench) -> None:
    path = bench.repository("web", {"a.ts": "x"})
    git(path, "branch", "develop")
    git(path, "push", "--quiet", "origin", "develop")
    url = f"file://{git(path, 'remote', 'get-url', 'origin')}"
    made = await bench.ok("create_project", name="Web", repo_url=url, default_branch="develop")
    assert made["default_branch"] == "develop"
    other = await bench.ok("create_project", name="Odd", default_branch="trunk")
    told = await bench.ok("add_repo", source="init", name="fresh", project_id=other["created"])
    assert told["default_branch"] == "main"
    assert "belongs to project 'web'" in await bench.no("create_project", name="Again", repo_url=url)
    assert "again" not in await _listed(bench)
    await bench.ok("create_profile", id="careful", name="Careful")
    await bench.ok("edit_project", project_id="web", default_profile_id="careful")
    task = (await bench.ok("create_task", title="x", project_id="web"))["created"]
    assert (await bench.ok("get_task", task_id=task))["profile_id"] == "careful"
