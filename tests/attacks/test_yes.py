"""A yes is for what was shown when it was asked: where that changes until it comes, it is asked again, not run."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from shared.guard.git import digest
from shared.guard.permissions import bound, grants
from shared.guard.permissions.presets import preset
from shared.guard.permissions.requests import ApprovalRequest, Decided, fingerprint
from shared.guard.sandbox.sandbox import Sandbox
from shared.loop import Call, Verdict
from shared.store.base import Store
from shared.tasks.worktree.mirrors import Mirrors
from shared.tools.execute import ToolExecutor
from shared.turns.records import AskRecord, DecidedRecord, JournalRecord, parse
from shared.worker.permissions.service import ApprovalService, decided_record, unanswered
from tests.attacks.ground import REGISTRY, Ground, git
from tests.support.guards import guarded

Meanwhile = Callable[[], object]


class Person:
    """Says yes to each question, after something happened; how they were asked."""

    def __init__(self, *meanwhile: Meanwhile) -> None:
        self.meanwhile, self.cards = list(meanwhile), list[ApprovalRequest]()
        self.approvals = self
        self.how = "allow_once"

    async def now(self) -> int:
        return 1

    async def put(self, card: ApprovalRequest) -> None:
        self.cards.append(card)

    async def decision(self, _id: str) -> Decided | None:
        if not self.cards:
            return None
        if _id != self.cards[-1].id:
            return None
        if self.meanwhile:
            self.meanwhile.pop(0)()
        return Decided(cast(Any, self.how), "ada", at=2)


def asked(ground: Ground, *meanwhile: Meanwhile) -> Person:
    """The ground with somebody who is asked."""
    person, gate = Person(*meanwhile), ground.gate
    gate.asked = replace(gate.asked, user_id="ada", session="s")
    gate.approvals = cast(ApprovalService, person)

    async def step(*records: JournalRecord, calls: Any = ()) -> None:
        ground.turn.records.extend(records)

    ground.turn.__dict__["step"] = step
    ground.turn.__dict__["claimed_at"] = -10_000_000
    return person


async def leave(
    ground: Ground, tool: str, key: str = "t.1.1", again: bool = False, **arguments: Any
) -> Verdict:
    call = Call("c", key, tool, arguments, again=again)
    return await ground.gate.permission(call, REGISTRY.bind(tool, arguments), ground.context)


async def does(ground: Ground, tool: str, **arguments: Any) -> dict[str, Any]:
    """A call with permission, made as the worker makes it."""
    verdict = await leave(ground, tool, **arguments)
    if not verdict.allowed:
        return {"error": verdict.reason}
    here = replace(ground.context, bound=ground.gate.facts.get("t.1.1", {}))
    return await ToolExecutor(REGISTRY).execute(tool, arguments, here)


@pytest.fixture
def ground(builder: Ground, tmp_path: Path) -> Ground:
    """A repository with a remote to push to, and another one."""
    root = builder.root
    for name in ("ours", "theirs"):
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(tmp_path / name)], check=True)
    git(root, "remote", "add", "origin", str(tmp_path / "ours"))
    git(root, "push", "-q", "origin", "main")
    standing = Ground(root, preset("standard"), builder.sandbox)
    repos = Mirrors(tmp_path / "home", "h", builder.sandbox, allow_local=True)
    standing.context = replace(standing.context, repos=repos)
    return standing


def commit(root: Path, name: str = "more") -> str:
    (root / name).write_text("more\n")
    git(root, "add", name)
    git(root, "-c", "user.name=Eve", "-c", "user.email=eve@example.org", "commit", "-qm", name)
    return git(root, "rev-parse", "HEAD")


def there(tmp_path: Path, name: str) -> str:
    return git(tmp_path / name, "rev-parse", "-q", "--verify", "main")


@guarded("bound-yes")
async def test_a_push_goes_where_it_was_shown_to_go_and_nowhere_else(ground: Ground, tmp_path: Path) -> None:
    person = asked(ground, lambda: git(ground.root, "remote", "set-url", "origin", str(tmp_path / "theirs")))
    person.meanwhile.append(lambda: setattr(person, "how", "deny"))
    told = await does(ground, "git_push", branch="main")
    assert "error" in told and there(tmp_path, "theirs") == ""
    first, second = person.cards
    assert first.bound["address"].endswith("/ours") and second.bound["address"].endswith("/theirs")
    assert first.id != second.id and "it leads to now" in second.why and "has changed since" in second.why


@guarded("bound-yes")
async def test_a_push_sends_the_commit_that_was_shown_and_none_that_came_after(
    ground: Ground, tmp_path: Path
) -> None:
    before = there(tmp_path, "ours")
    shown = commit(ground.root)
    person = asked(ground, lambda: commit(ground.root, "evil"))
    person.meanwhile.append(lambda: setattr(person, "how", "deny"))
    assert "error" in await does(ground, "git_push", branch="main")
    assert there(tmp_path, "ours") == before
    first, second = person.cards
    assert first.bound["commit"] == shown and first.bound["changes"].startswith("1 commit: 1 file changed")
    assert "2 commits" in second.why
    assert first.shown()["bound"] == first.bound, "every surface shows it"
    assert shown[:12] in bound.describe(first.bound) and "/ours" in bound.describe(first.bound)


@guarded("bound-yes")
async def test_a_command_meets_the_files_that_were_there_when_it_was_asked_for(ground: Ground) -> None:
    (ground.root / "Makefile").write_text("test:\n\ttrue\n")
    person = asked(ground, lambda: (ground.root / "Makefile").write_text("test:\n\ttouch SWAPPED\n"))
    person.meanwhile.append(lambda: setattr(person, "how", "deny"))
    await does(ground, "run_command", command="make test", working_dir="workspace")
    assert not (ground.root / "SWAPPED").exists()
    assert len(person.cards) == 2 and "the files are those of now" in person.cards[1].why


@guarded("bound-yes")
async def test_a_merge_is_of_the_commits_that_were_shown(ground: Ground) -> None:
    git(ground.root, "checkout", "-q", "-f", "-b", "work")
    commit(ground.root)
    git(ground.root, "checkout", "-q", "main")

    def moved() -> None:
        git(ground.root, "checkout", "-q", "work")
        commit(ground.root, "evil")
        git(ground.root, "checkout", "-q", "main")

    person = asked(ground, moved)
    person.meanwhile.append(lambda: setattr(person, "how", "deny"))
    await does(ground, "git_merge", branch_name="work", default_branch="main")
    assert not (ground.root / "evil").exists()
    assert len(person.cards) == 2


async def test_what_stays_as_it_was_shown_is_asked_once_and_done(ground: Ground, tmp_path: Path) -> None:
    shown = commit(ground.root)
    person = asked(ground)
    assert await does(ground, "git_push", branch="main") == {"pushed": "main"}
    assert len(person.cards) == 1 and there(tmp_path, "ours") == shown
    assert ground.decisions == ["ask_approved"]


async def test_what_changes_each_time_is_refused_in_the_end(ground: Ground) -> None:
    person = asked(ground, *(partial(commit, ground.root, f"evil{n}") for n in range(20)))
    verdict = await leave(ground, "git_push", branch="main")
    assert not verdict.allowed and "faster than it can be allowed" in verdict.reason
    assert len({card.id for card in person.cards}) == len(person.cards) == 5
    assert ground.decisions == ["deny"]


@guarded("bound-yes")
async def test_a_worker_who_takes_over_compares_with_what_its_predecessor_showed(
    ground: Ground, tmp_path: Path
) -> None:
    """The yes is in the journal, its worker is dead, and the branch has moved since."""
    asked(ground)
    assert (await leave(ground, "git_push", branch="main")).allowed
    kept = [record for record in ground.turn.records if isinstance(record, AskRecord | DecidedRecord)]
    commit(ground.root, "evil")
    successor = Ground(ground.root, ground.policy, ground.sandbox)
    successor.context = ground.context
    person = asked(successor)
    person.how = "deny"
    successor.turn.records.extend(kept)
    verdict = await leave(successor, "git_push", again=True, branch="main")
    assert not verdict.allowed
    assert [ask.request for ask in successor.turn.records.asks()] == [
        ground.turn.records.asks()[0].request,
        person.cards[0].id,
    ]
    assert unanswered(successor.turn.records) == [] and successor.turn.records.waited_ms(99) == 2


async def test_a_command_that_may_have_run_is_not_asked_for_again(ground: Ground) -> None:
    """What it changed itself is no reason to; whoever carries on says that nobody knows what became of it."""
    asked(ground)
    call: Any = {"command": "make test", "working_dir": "workspace"}
    assert (await leave(ground, "run_command", **call)).allowed
    (ground.root / "made-by-it").write_text("x")
    successor = Ground(ground.root, ground.policy, ground.sandbox)
    successor.context = ground.context
    person = asked(successor)
    successor.turn.records.extend(
        record for record in ground.turn.records if isinstance(record, AskRecord | DecidedRecord)
    )
    assert (await leave(successor, "run_command", again=True, **call)).allowed
    assert person.cards == [] and "t.1.1" not in successor.gate.fresh


def _grant(
    ground: Ground, card: ApprovalRequest, how: Any = "always", pattern: str = ""
) -> list[dict[str, Any]]:
    row = grants.row(card, Decided(how, "ada", pattern=pattern or card.pattern, scope="everywhere", at=1))
    return [{"id": row.key, **row.value}]


class Granted:
    """A Store that holds standing permissions."""

    def __init__(self, given: list[dict[str, Any]]) -> None:
        self.given = given

    async def select(self, *_arguments: Any, **_more: Any) -> list[Any]:
        return [type("Row", (), {"key": one["id"], "value": one}) for one in self.given]


@guarded("bound-yes")
async def test_what_is_allowed_for_good_is_allowed_for_the_address_that_was_shown(
    ground: Ground, tmp_path: Path
) -> None:
    person = asked(ground)
    await leave(ground, "git_push", branch="main")
    ground.gate.store = cast(Store, Granted(_grant(ground, person.cards[0])))
    commit(ground.root)
    assert (await leave(ground, "git_push", "t.2.1", branch="main")).allowed
    assert len(person.cards) == 1, "another commit to the same place needs no word"
    git(ground.root, "remote", "set-url", "origin", str(tmp_path / "theirs"))
    person.how = "deny"
    assert not (await leave(ground, "git_push", "t.3.1", branch="main")).allowed
    assert len(person.cards) == 2


async def test_a_pattern_of_a_persons_own_is_bound_to_nothing_but_itself(
    ground: Ground, tmp_path: Path
) -> None:
    person = asked(ground)
    await leave(ground, "git_push", branch="main")
    ground.gate.store = cast(Store, Granted(_grant(ground, person.cards[0], pattern="tool:git_push:.*")))
    git(ground.root, "remote", "set-url", "origin", str(tmp_path / "theirs"))
    assert (await leave(ground, "git_push", "t.2.1", branch="main")).allowed


async def test_questions_and_answers_of_the_release_before_still_count(ground: Ground) -> None:
    """Their cards name nothing that they are bound to, and their answers no card."""
    arguments = {"branch": "main"}
    card = ApprovalRequest(
        *(
            "a1",
            "t.1.1",
            "backend",
            "s",
            "ada",
            "t",
            "h",
            "git_push",
            "tool:git_push:push origin main",
            arguments,
        ),
        *(fingerprint(arguments), "why", "pattern", "default", 1, 2),
    )
    old = {name: value for name, value in asdict(card).items() if name != "bound"}
    decided = decided_record(card, Decided("allow_once", "ada", at=7)).fields()
    del decided["card"]
    asked(ground)
    ground.turn.records.extend([AskRecord(at=1, call="t.1.1", card=old), parse(decided)])
    assert (await leave(ground, "git_push", branch="main")).allowed
    assert unanswered(ground.turn.records) == [] and ground.turn.records.waited_ms(99) == 6


# Before permission


ADDRESSES: list[tuple[str, dict[str, Any]]] = [
    ("add_repo", {"source": "clone", "url": "http://hunter2-prod-77.invalid/x.git"}),
    ("add_repo", {"source": "clone", "url": "git@hunter2-prod-77.invalid:x.git"}),
    ("git_push", {"branch": "main"}),
    ("git_pull", {"branch": "main"}),
    ("git_create_pr", {"title": "x", "branch": "main"}),
]


@pytest.mark.parametrize(("tool", "arguments"), ADDRESSES, ids=str)
async def test_no_name_is_looked_up_and_nothing_is_sent_before_leave_is_given(
    tool: str, arguments: dict[str, Any], ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(ground.root, "remote", "set-url", "origin", "http://hunter2-prod-77.invalid/x.git")
    repos = Mirrors(tmp_path / "home", "h", ground.sandbox)
    ground.context = replace(ground.context, repos=repos)
    lookups, started = list[str](), list[str]()

    async def look(_loop: Any, host: str, *_more: Any, **_named: Any) -> list[Any]:
        lookups.append(host)
        return []

    real = asyncio.BaseEventLoop.subprocess_exec

    async def watched(loop: Any, protocol: Any, *argv: Any, **named: Any) -> Any:
        started.extend(map(str, argv))
        return await real(loop, protocol, *argv, **named)

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", look)
    monkeypatch.setattr(asyncio.BaseEventLoop, "subprocess_exec", watched)
    person, ready = asked(ground), REGISTRY.get(tool).ready
    person.how = "deny"
    if ready is not None:
        await ready(ground.context, **REGISTRY.get(tool).check(arguments))
    assert not (await leave(ground, tool, **arguments)).allowed
    assert len(person.cards) == 1, "it is asked for"
    assert "hunter2" in person.cards[0].bound["address"]
    assert lookups == [] and not {"fetch", "push", "ls-remote", "gh"} & set(started)


# What a checkout holds


async def test_a_digest_is_of_names_contents_modes_and_links(ground: Ground, strongest: Sandbox) -> None:
    root, seen = ground.root, list[str]()

    async def differs(what: str) -> None:
        seen.append(await digest.digest(root, strongest))
        assert len(set(seen)) == len(seen), what

    await differs("at first")
    (root / "new").write_text("x")
    await differs("a new file")
    (root / "new").chmod(0o755)
    await differs("its mode")
    (root / "new").unlink()
    (root / "new").symlink_to("f")
    await differs("a link")
    (root / "f").write_text("another")
    await differs("a tracked file")
    (root / ".gitignore").write_text("*.log\n")
    await differs("what git ignores")
    (root / "x.log").write_text("noise")
    assert await digest.digest(root, strongest) == seen[-1], "what git ignores does not count"


async def test_of_what_is_too_much_to_read_size_and_time_count(
    ground: Ground, strongest: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "BYTES", 10)
    before = await digest.digest(ground.root, strongest)
    (ground.root / "big").write_text("other")
    assert await digest.digest(ground.root, strongest) != before


async def test_a_folder_without_a_repository_has_a_digest_too(tmp_path: Path, strongest: Sandbox) -> None:
    folder = tmp_path / "plain"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "f").write_text("1")
    before = await digest.digest(folder, strongest)
    (folder / "in" / "f").write_text("2")
    assert await digest.digest(folder, strongest) != before


# By ssh


def _published(ground: Ground, tmp_path: Path, url: str) -> Ground:
    """Its repository leads to that place, and nothing of this machine may be one."""
    git(ground.root, "remote", "set-url", "origin", url)
    repos = Mirrors(tmp_path / "home", "h", ground.sandbox)
    ground.context = replace(ground.context, repos=repos)
    return ground


@pytest.mark.parametrize(
    "url",
    [
        "git@code.company.invalid:team/x.git",
        "code.company.invalid:x",
        "ssh://git@code.company.invalid/team/x.git",
        "ssh://code.company.invalid:2222/team/x.git",
    ],
)
async def test_the_question_about_a_push_by_ssh_names_the_address_with_its_host(
    url: str, ground: Ground, tmp_path: Path
) -> None:
    person = asked(_published(ground, tmp_path, url))
    person.how = "deny"
    assert not (await leave(ground, "git_push", branch="main")).allowed
    [card] = person.cards
    assert card.bound["address"] == url
    assert f"to {url}" in card.about["does"] and "code.company.invalid" in card.about["does"]


@guarded("bound-yes")
async def test_a_yes_to_one_host_of_ssh_is_none_to_another(ground: Ground, tmp_path: Path) -> None:
    other = "git@code.company.invalid.evil.invalid:team/x.git"
    _published(ground, tmp_path, "git@code.company.invalid:team/x.git")
    person = asked(ground, lambda: git(ground.root, "remote", "set-url", "origin", other))
    person.meanwhile.append(lambda: setattr(person, "how", "deny"))
    verdict = await leave(ground, "git_push", branch="main")
    assert not verdict.allowed and person.cards[-1].bound["address"] == other


@pytest.mark.parametrize(
    "url",
    [
        "-oProxyCommand=touch${IFS}CANARY",
        "-oProxyCommand=touch${IFS}CANARY:x",
        "git@-oProxyCommand=touch${IFS}CANARY:x",
        "ssh://-oProxyCommand=touch${IFS}CANARY/x",
        "ssh://git@-oProxyCommand=touch${IFS}CANARY/x",
        "ssh://-oProxyCommand=touch${IFS}CANARY@code.company.invalid/x",
        "ssh://code.company.invalid -oProxyCommand=touch/x",
        "ssh://$(touch${IFS}CANARY)/x",
        "ssh://`touch${IFS}CANARY`/x",
        "git@code.company.invalid:-oProxyCommand=touch${IFS}CANARY",
        "ext::ssh -oProxyCommand=touch% CANARY x",
        "ssh+git://-oProxyCommand=touch${IFS}CANARY/x",
    ],
)
async def test_a_remote_that_would_be_an_option_or_a_command_of_ssh_never_reaches_it(
    url: str, ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the person says yes."""
    _published(ground, tmp_path, url)
    asked(ground)
    started = list[str]()
    real = asyncio.BaseEventLoop.subprocess_exec

    async def watched(loop: Any, protocol: Any, *argv: Any, **named: Any) -> Any:
        started.append(" ".join(map(str, argv)))
        return await real(loop, protocol, *argv, **named)

    monkeypatch.setattr(asyncio.BaseEventLoop, "subprocess_exec", watched)
    told = await does(ground, "git_push", branch="main")
    assert "cannot be used" in str(told["error"]), told
    assert started and not any(" push " in words for words in started), started
    assert _found(tmp_path, "CANARY") == []


def _found(folder: Path, name: str) -> list[Path]:
    return [*folder.rglob(name)]
