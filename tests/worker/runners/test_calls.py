"""The calls of a turn: which a model may not make, which run, and what is said of one that may have run already."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from shared.errors import UsageError
from shared.loop import Call, Verdict
from shared.profiles.profile import Profile
from shared.tools.context import Context
from shared.tools.execute import ToolExecutor
from shared.tools.registry import Category, Registry, Result
from shared.worker.runners.calls import TurnCalls
from tests.worker.ground import connected, turn_of

category = Category("lamps", "Lamps.")
ran: list[str] = []


@category.tool(effect="once")
async def light(here: Context, lamp: str) -> Result:
    """Light a lamp."""
    ran.append(lamp)
    return {"lit": lamp, "allowed_by": here.allowed_by}


async def _broken(_here: Context, lamp: str) -> None:
    if lamp == "broken":
        raise UsageError("there is no such lamp", "", "")


@category.tool(effect="pure", ready=_broken)
async def look(_here: Context, lamp: str) -> Result:
    """Look at a lamp."""
    return {"error": "it is dark", "why": f"{lamp} is off"}


class Gate:
    """Says yes, and remembers what it was asked."""

    def __init__(self) -> None:
        self.fresh, self.facts = set[str](), dict[str, dict[str, str]]()
        self.policy, self.asked = SimpleNamespace(name="open"), SimpleNamespace(user_id="ann")
        self.passed = list[str]()

    async def permission(self, call: Call, _bound: object, _context: Context) -> Verdict:
        self.passed.append(call.tool)
        return Verdict(True)

    def refuse(self, _call: Call, why: str) -> Verdict:
        return Verdict(False, why)

    def allowed_by(self, _call: Call) -> str:
        return "ann"


class Ground:
    """A turn of an agent that may light lamps and look at them."""

    def __init__(self, turn: Any) -> None:
        ran.clear()
        registry = Registry([category])
        settings = SimpleNamespace(permission_profile="", own_model=lambda _name: None, approver_roles=set())
        model = SimpleNamespace(speaker=lambda _name: "Claude")
        caller = SimpleNamespace(
            registry=registry,
            handler=ToolExecutor(registry),
            profile=Profile(name="lamplighter"),
            folder=None,
            hidden=frozenset(),
            view=SimpleNamespace(runs=lambda name: name != "hidden"),
            resources=SimpleNamespace(settings=settings, model=model),
        )
        self.gate, self.said = Gate(), list[str]()
        self.context = Context("lamplighter", "s", turn.id, cast(Any, None), say=self._say)
        parts: Any = (caller, turn, self.gate, lambda: self.context)
        self.calls = TurnCalls(*parts)

    async def _say(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
async def ground() -> Ground:
    connection = connected()
    return Ground(await turn_of(connection, "lamplighter", "m1"))


def call(tool: str, again: bool = False, **arguments: Any) -> Call:
    return Call("b1", "m1.1.1", tool, arguments, again)


async def test_a_call_that_has_permission_runs_and_knows_who_gave_it(ground: Ground) -> None:
    wanted = call("light", lamp="red")
    assert (await ground.calls.permit(wanted)).allowed and ground.gate.passed == ["light"]
    assert (await ground.calls.run(wanted)).content == {"lit": "red", "allowed_by": "ann"}


async def test_what_the_model_is_not_shown_it_cannot_call(ground: Ground) -> None:
    verdict = await ground.calls.permit(call("hidden"))
    assert not verdict.allowed and "not among the tools of lamplighter" in verdict.reason


async def test_nobody_is_asked_about_a_call_that_cannot_be_made(ground: Ground) -> None:
    wrong = call("light", lantern="red")
    assert (await ground.calls.permit(wrong)).allowed and ground.gate.passed == []
    assert (await ground.calls.run(wrong)).is_error and ran == []
    broken = await ground.calls.permit(call("look", lamp="broken"))
    assert not broken.allowed and "no such lamp" in broken.reason and ground.gate.passed == []


async def test_what_may_run_only_once_and_may_have_run_is_not_run_again(ground: Ground) -> None:
    done = await ground.calls.run(call("light", again=True, lamp="red"))
    assert done.is_error and "took effect is not known" in str(done.content["error"])
    assert ran == [] and "It is not run again" in ground.said[0]


async def test_a_call_that_waited_for_permission_until_now_never_ran(ground: Ground) -> None:
    ground.gate.fresh.add("m1.1.1")
    assert not (await ground.calls.run(call("light", again=True, lamp="red"))).is_error and ran == ["red"]


async def test_what_a_reading_tool_says_when_it_fails_is_ours(ground: Ground) -> None:
    done = await ground.calls.run(call("look", lamp="red"))
    assert done.is_error and not done.foreign
