"""Full mode: a turn with a plan. It is decomposed, a strategy is chosen, the steps are gone one by one, and answered.

All of it is one loop: each step is a note of ours that the model is told as the one before ends. Plan and steps are
records of the journal, written together with these notes, so that a successor goes on at the step that was under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from shared import failpoints
from shared.bus import messages
from shared.guard.permissions import marks
from shared.loop import PublishEvent
from shared.loop.base import JoinedMessages
from shared.loop.transcript import Transcript
from shared.tools.context import CONSULTED
from shared.tools.tasks.planning import PLAN
from shared.turns.records import NoteRecord, PlanRecord, StepRecord
from shared.turns.turn import Turn
from shared.worker.runners.agent import AgentRunner
from shared.worker.runners.peers import Peers, Say

_PLANNER = CONSULTED["consult_planner"]
_ROUNDS = 60  # calls of the model in one such turn at most
_STEPS = 12
_TEXT = 400  # characters of a step as the Planner puts it

_BEGIN = """[You work in full mode. First call plan_work, once: choose the strategy that fits, and name the steps.
- direct: it needs no steps
- step_by_step: each step builds on the one before
- reason_act: think what is missing, act with your tools, look at what came of it, and think again
- reflect_and_revise: make a draft, find what is wrong with it, and revise it
You are told when each step begins. Do nothing of a step before that.{advice}]"""
_ADVICE = "\nThe Planner proposes these steps; take them over, or better ones:\n{steps}"
_HOW = {
    "step_by_step": "Do this step, and say in a few lines what came of it.",
    "reason_act": "Think what you need to know for it, act with your tools, look at the results, and go on until it is "
    "done; then say in a few lines what came of it.",
    "reflect_and_revise": "Make a draft of it.",
}  # fmt: skip
_STEP = "[Step {number} of {of}: {title}\n{how}]"
_REFLECT = (
    "[Look at what you have with the eyes of a strict reviewer: what is wrong, missing, unproven or unclear? "
    "List it; change nothing yet.]"
)
_REVISE = "[Now revise it by what you found.]"
_ANSWER = (
    "[All steps are done. Answer the person now, whole and by itself: they have read none of the steps. Say what was "
    "done, what came of it, and what is left.]"
)


@dataclass
class Work:
    """How a turn is carried out: by whom, with what words of ours, and with what joins it meanwhile."""

    agent_runner: AgentRunner
    joined: JoinedMessages
    opening: list[str] = field(default_factory=list)


async def begin(
    agent_runner: AgentRunner,
    turn: Turn,
    said: messages.Said | None,
    peers: Peers,
    live: PublishEvent,
    say: Say,
    joined: JoinedMessages,
) -> Work:
    """The work of a turn in full mode; in simple mode it is what it is anyway."""
    if said is None or said.mode != "full":
        return Work(agent_runner, joined)
    advice = turn.records.first(PlanRecord)
    if advice is None:
        advice = await _asked(agent_runner, turn, said, peers)
        await turn.step(advice)
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(advice.steps, 1))
    opening = _BEGIN.format(advice=_ADVICE.format(steps=steps) if steps else "")
    profile = agent_runner.profile
    more = {"tools": [*profile.tools, PLAN], "rounds": max(profile.rounds or 0, _ROUNDS)}
    full = agent_runner.working_as(profile.model_copy(update=more), agent_runner.folder or profile)
    return Work(full, _Steps(turn, live, say, joined, advice.by).joined, [opening])


async def _asked(agent_runner: AgentRunner, turn: Turn, said: messages.Said, peers: Peers) -> PlanRecord:
    """What the Planner proposes, where it is up."""
    nothing = PlanRecord(at=turn.now())
    if agent_runner.profile.name == _PLANNER or not (await peers.status(_PLANNER))["online"]:
        return nothing
    question = (
        "Decompose this request into the steps in which it is best answered, at most "
        f"{_STEPS}; write no tasks:\n\n{said.content}"
    )
    answer = await peers.ask(_PLANNER, {"question": question, "decompose": True}, f"{turn.id}.plan")
    if "error" in answer:
        return nothing
    marks.note(turn.records, turn.keep, f"the answer of {_PLANNER}", "in this turn")
    return PlanRecord(at=turn.now(), by=_PLANNER, steps=_proposed(answer))


def _proposed(answer: dict[str, Any]) -> list[str]:
    plan = answer.get("plan")
    tasks = plan.get("tasks") if isinstance(plan, dict) else None
    found = []
    for task in tasks if isinstance(tasks, list) else []:
        if isinstance(task, dict) and task.get("title"):
            about = " ".join(str(task.get("description") or "").split())
            found.append(f"{task['title']}{f': {about}' if about else ''}"[:_TEXT])
    return found[:_STEPS]


class _Steps:
    """Tells the model of each step as the one before ends; what people say meanwhile goes first."""

    def __init__(self, turn: Turn, live: PublishEvent, say: Say, joined: JoinedMessages, by: str) -> None:
        self._turn, self._live, self._say, self._joined, self._by = turn, live, say, joined, by
        self._fresh = True

    async def joined(self) -> Sequence[str | NoteRecord]:
        words = await self._joined()
        plan = self._turn.records.last_result(PLAN)
        if words or plan is None or plan["strategy"] == "direct":
            return words
        done = self._turn.records.of(StepRecord)
        if self._fresh and done:  # whoever had it before may have died before these events were out
            self._live("plan", {**self._plan(plan), "again": True})
            for record in done:
                self._live("step", {**self._told(record), "state": "begun" if record is done[-1] else "done"})
        self._fresh = False
        if done and not Transcript(self._turn.id, self._turn.records).answered:
            return words  # one is under way
        ways = _ways(plan)
        if not done:
            await self._planned(plan)
        else:
            self._live("step", {**self._told(done[-1]), "state": "done"})
        if len(done) == len(ways):
            return words
        begun, note = ways[len(done)]
        record = StepRecord(at=self._turn.now(), number=begun.number, of=begun.of, title=begun.title)
        failpoints.point("step", f"{self._turn.id}.{record.number}")
        self._turn.keep(record)  # stored with the note, or neither is
        self._live("step", {**self._told(record), "state": "begun"})
        if record.of:
            await self._say(f"Step {record.number} of {record.of}: {record.title}")
        return [note]

    async def _planned(self, plan: dict[str, Any]) -> None:
        steps, strategy = plan["steps"], plan["strategy"]
        self._live("plan", self._plan(plan))
        lines = [f"{number}. {step}" for number, step in enumerate(steps, 1)]
        await self._say("\n".join([f"Plan ({strategy.replace('_', ' ')}):", *lines]))

    def _plan(self, plan: dict[str, Any]) -> dict[str, Any]:
        return {"strategy": plan["strategy"], "steps": plan["steps"], "by": self._by or None}

    @staticmethod
    def _told(record: StepRecord) -> dict[str, Any]:
        return {"number": record.number, "of": record.of or None, "title": record.title}


def _ways(plan: dict[str, Any]) -> list[tuple[StepRecord, str]]:
    """Everything that the model is told, in order, each with its record."""
    steps, strategy = plan["steps"], plan["strategy"]
    told = [
        (
            StepRecord(number=number, of=len(steps), title=title),
            _STEP.format(number=number, of=len(steps), title=title, how=_HOW[strategy]),
        )
        for number, title in enumerate(steps, 1)
    ]
    last = [("reflect", _REFLECT), ("revise", _REVISE)] if strategy == "reflect_and_revise" else []
    last.append(("answer", _ANSWER))
    more = [
        (StepRecord(number=number, title=title), note)
        for number, (title, note) in enumerate(last, len(told) + 1)
    ]
    return [*told, *more]
