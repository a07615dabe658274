"""Two disks on one Redis and one Store: what lies on the one is read from the other, by real processes."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.bus.signing import Signer
from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Rules
from tests.support.processes import Site, site
from tests.support.valkey import valkey
from tests.support.wire import Wire
from tests.tools.bench import Bench
from tests.tools.ground import commit, git, repository, write
from tests.tools.test_command_line import tools

__all__ = ["valkey"]

SECRET = "of-both-machines-" * 3
LOOK = {"name": "read_file", "input": {"path": "shop/app.py"}}
RULES: list[dict[str, Any]] = [
    {"user": "what does the app say", "steps": [{"tools": [LOOK]}, {"text": "It says {{result.content}}"}]},
    {"steps": [{"text": "ok"}]},
]


class Homes:
    """Chatter and Planner on one disk, Researcher and the linked repository on the other."""

    def __init__(self, here: Site, there: Site, wire: Wire, shop: Path) -> None:
        self.here, self.there, self.wire, self.shop = here, there, wire, shop

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """A command to Chatter, and its result."""
        return dict(self.wire.command(tool, **arguments)["result"])


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory, valkey: str) -> Iterator[Homes]:
    folder = tmp_path_factory.mktemp("homes")
    shop = repository(folder / "shop", {"app.py": "one\ntwo\n"}).path
    with MessagesApi(Rules(RULES)) as api:
        model = {"ANTHROPIC_API_KEY": "sk-ant-test-key-0000", "ANTHROPIC_BASE_URL": api.url}
        model["PROMPTDOCK_SECRET"] = SECRET
        with site(folder / "here", valkey, **model) as here:
            named = {**model, "PROMPTDOCK_NAMESPACE": here.names.namespace}
            with site(folder / "there", valkey, **named) as there, Wire(here.url, here.names) as wire:
                for one in (here, there):
                    one.home.mkdir()
                # The one Store of both; each has its own mirrors, worktrees and id.
                (there.home / "promptdock.db").symlink_to(here.home / "promptdock.db")
                here.up("chatter", "planner")
                there.up("researcher")
                made = Homes(here, there, wire, shop)
                _link(made)
                yield made


def _link(homes: Homes) -> None:
    """Register the repository as one that is linked on the other disk."""
    added = homes.call("add_repo", source="link", path=str(homes.shop))
    assert "error" not in added, added
    with contextlib.closing(sqlite3.connect(homes.here.home / "promptdock.db", timeout=30)) as db, db:
        db.execute("update repos set home = ?", ((homes.there.home / "home-id").read_text().strip(),))


def test_a_file_and_the_history_of_a_path_that_is_linked_elsewhere_are_read(homes: Homes) -> None:
    told = homes.call("read_file", path="shop/app.py")
    assert (told["content"], told["path"], told["source"]) == ("one\ntwo", "shop/app.py", "repository")
    write(homes.shop, {"app.py": "changed and not committed\n"})
    assert homes.call("read_file", path="app.py")["content"] == "changed and not committed"
    git(homes.shop, "checkout", "--quiet", "app.py")
    told = homes.call("git_log", workspace="shop")
    assert [entry["subject"] for entry in told["log"]] == ["the first commit"]
    assert homes.call("grep", pattern="tw.", path="shop")["matches"][0]["line"] == 2
    assert any("Reading for another home" in words for words in homes.there.workers[0].said())


def test_the_rules_of_paths_hold_there_too_and_nothing_is_changed_from_afar(homes: Homes) -> None:
    for path in ("shop/../../etc/passwd", "shop/.git/config", "shop/nothing.py"):
        told = homes.call("read_file", path=path)
        assert "error" in told and str(homes.shop) not in str(told)
    told = homes.call("write_file", path="shop/app.py", content="from afar")
    assert "another machine" in told["error"]
    assert (homes.shop / "app.py").read_text() == "one\ntwo\n"


def test_what_a_task_changed_is_shown_by_the_disk_that_has_its_branch(homes: Homes) -> None:
    base = git(homes.shop, "rev-parse", "HEAD")
    git(homes.shop, "checkout", "--quiet", "-b", "promptdock/far")
    write(homes.shop, {"app.py": "one\ntwo\nthree\n"})
    commit(homes.shop, "by a task")
    git(homes.shop, "checkout", "--quiet", "main")
    task = homes.call("create_task", title="Far", repo_id="shop")["created"]
    with contextlib.closing(sqlite3.connect(homes.here.home / "promptdock.db", timeout=30)) as db, db:
        db.execute("update tasks set branch = 'promptdock/far', status = 'BLOCKED' where slug = ?", (task,))
    told = homes.call("get_task_diff", task_id=task)
    assert "+three" in told["diff"] and (told["branch"], told["base"]) == ("promptdock/far", base), told
    merged = homes.call("discard_task", task_id=task)
    assert "another machine" in merged["error"] and str(homes.shop) in merged["why"], (
        "where it has to be done"
    )
    assert "on that machine" in merged["fix"]
    git(homes.shop, "branch", "--quiet", "-D", "promptdock/far")
    assert "is not on this machine" in homes.call("get_task_diff", task_id=task)["error"]


def test_an_agent_whose_disk_has_no_such_repository_reads_it_all_the_same(homes: Homes) -> None:
    question = {"id": "q1", "from": "asker", "to": "planner", "type": "question"}
    homes.wire.publish("agent:planner", {**question, "payload": {"question": "What does the app say?"}})
    answer = homes.wire.wait("agent:asker", lambda message: message["type"] in ("response", "error"))
    assert answer["payload"].get("answer") == "It says one\ntwo", answer


def test_only_reading_is_done_for_whoever_asks_on_the_channel(homes: Homes) -> None:
    home = (homes.there.home / "home-id").read_text().strip()
    for number, tool in enumerate(("write_file", "run_command", "delete_project", "no_such_tool")):
        request: dict[str, Any] = {
            "id": f"evil-{number}",
            "from": f"evil{number}",
            "to": "home",
            "type": "command",
        }
        request |= {"payload": {"tool": tool, "arguments": {}}}
        name = homes.wire.names.channel(f"home:{home}")
        homes.wire.publish(f"home:{home}", {**request, "sig": Signer(SECRET).sign(name, request)})
        answer = homes.wire.wait(f"agent:evil{number}", lambda message: message["type"] == "error")
        assert "not run for others" in answer["payload"]["error"], tool
    homes.wire.publish(f"home:{home}", {"nonsense": True})
    assert homes.call("read_file", path="shop/app.py")["lines"] == 2, "nonsense does no harm"


def test_a_machine_with_another_secret_is_refused_and_told_why(homes: Homes) -> None:
    home = (homes.there.home / "home-id").read_text().strip()
    payload = {"tool": "read_file", "arguments": {"path": "shop/app.py"}}
    request: dict[str, Any] = {
        "id": "o-1",
        "from": "other",
        "to": "home",
        "type": "command",
        "payload": payload,
    }
    request["sig"] = Signer("another" * 8).sign(homes.wire.names.channel(f"home:{home}"), request)
    homes.wire.publish(f"home:{home}", request)
    answer = homes.wire.wait("agent:other", lambda message: message["type"] == "error")
    assert "PROMPTDOCK_SECRET" in answer["payload"]["fix"]


async def test_a_repository_with_a_url_is_mirrored_where_it_is_read(bench: Bench) -> None:
    url = "file://" + git(bench.repository("far", {"a.py": "x\n"}), "remote", "get-url", "origin")
    await bench.ok("add_repo", source="clone", url=url, name="far")
    other = Bench(bench.store, bench.home.parent / "other", bench.repos.sandbox, "other")
    assert (await other.ok("read_file", path="far/a.py"))["content"] == "x"
    assert (await other.ok("git_log", workspace="far"))["log"][0]["subject"] == "the first commit"
    for one in (bench, other):
        assert len(list((one.home / "mirrors").glob("far-*.git"))) == 1


def test_a_tool_is_called_from_the_command_line(homes: Homes) -> None:
    there = {"REDIS_URL": homes.here.url, "PROMPTDOCK_NAMESPACE": homes.here.names.namespace}
    done = tools(homes.here.home, "call", "read_file", '{"path": "shop/app.py"}', **there)
    assert (done.returncode, json.loads(done.stdout)["content"]) == (0, "one\ntwo"), done.stderr
    done = tools(homes.here.home, "call", "create_task", "-", "--json", stdin='{"title": "Look"}', **there)
    document = json.loads(done.stdout)
    assert (document["schema"], document["result"]["title"]) == ("promptdock.tool_result.v1", "Look")
    done = tools(homes.here.home, "call", "read_file", '{"path": "shop/none"}', **there)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no such file" in done.stderr
    done = tools(homes.here.home, "call", "create_task", '{"title": "x"}', "--profile", "locked", **there)
    assert done.returncode == 6, done.stderr


def test_a_disk_where_nobody_works_any_more_is_said_at_once(homes: Homes) -> None:
    homes.there.workers[0].drain()
    told = homes.call("git_log", workspace="shop")
    assert "no worker runs now" in told["error"] and "start an agent there" in told["fix"]
