"""What the demo model says and does: for each agent a function from the scene to the next move.

Chatter goes by what the person's message names first: a plan, research, a status, a decision, something to
build or to merge, an agent to ask. Calls are made only of tools that are offered; what failed is said as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from shared.models.demo import build, report
from shared.models.demo.build import Arguments, slug
from shared.models.demo.report import LABEL
from shared.models.demo.scene import ESCALATE, Scene, clip

TEAM = ("planner", "researcher", "frontend", "backend")
_FRONTEND = re.compile(
    r"\b(?:pages?|css|buttons?|frontend|ui|html|react|forms?|components?|screens?)\b", re.I
)
_BACKEND = re.compile(r"\b(?:backend|api|apis|server|database|sql|endpoints?|routes?|auth\w*|jwt)\b", re.I)

_ASKS = r"(?:\b(?:check with|ask|consult|talk to)\s+(?:the\s+|@)?|(?<![\w@])@)"
# The one that stands first in the text wins; the weak ones count only where none of the strong is found.
_STRONG = {
    "plan": r"\bplan(?:s|ned|ning|ner)?\b|\b(?:make|create|write|draw up)\s+(?:me\s+)?(?:a|the)\s+plan\b",
    "research": r"\bresearch\w*|\blook (?:at|into)\b|\bfind\b|\bwhere\b",
    "status": r"\bstatus\b",
    "merge": r"\bmerge\b|\b(?:land|ship)\s+(?:it|this|that|them|everything|the\s+\w+)\b",
    "decide": r"\bdecide\b|\bchoose\b|\bambiguous\b|^\W*which\b",
    "build": r"\b(?:build|implement|add|fix|create|make)\b",
    "recall": r"\bremember\b|\bwhat (?:did|have) i\b",
}
_WEAK = {"decide": r"\bwhich\b", "recall": r"\b(?:before|earlier|previous\w*)\b", "build": r"\bdemo\b"}

_HEARD = 6  # tasks that were told of and are looked at before a merge
_SUMMARISE = re.compile(r"\W*summari[sz]e", re.I)

# words of questions rather than of code
_PLAIN = re.compile(
    r"research(?:er)?|look|find|where|wh(?:ich|at|en|ose)|this|that|th(?:ere|eir|em|ese)|with|from|have|into|about|"
    r"already|exist(?:s|ing)?|implement(?:s|ed|ation)?|build|create|make|should|would|could|does|code|please|check|"
    r"repo(?:s|sitory|sitories)?|question|analy[sz]e|conflicts?|both|frontend|backend|focus|areas?",
    re.IGNORECASE,
)

_HEADED = re.compile(r"^#+\s+\S", re.MULTILINE)  # as the command file of every task is


@dataclass(frozen=True)
class Move:
    """The next answer: words, calls, or both."""

    text: str = ""
    calls: tuple[tuple[str, Arguments], ...] = ()


def act(scene: Scene) -> Move:
    """The demo's next move; depends on nothing but the scene."""
    part = _PARTS.get(scene.agent, _coder if "create_file" in scene.offered else _other)
    move = part(scene)
    return move if move.text or move.calls else Move(f"{LABEL} There is nothing to do.")


def asked_of(text: str, roster: Iterable[str] = ()) -> re.Match[str] | None:
    """Where a message asks an agent, and its `name`: one that is known, or whatever is called agent or worker."""
    names = "|".join(re.escape(name) for name in sorted({*TEAM, *roster}, key=len, reverse=True))
    called = r"(?P<called>[\w-]+)\s+(?:agent|worker)\b"
    return re.search(rf"{_ASKS}(?:(?P<known>{names})(?![\w-])|{called})", text, re.I)


def topic(text: str, roster: Iterable[str] = ()) -> str:
    """What a message is about: a key of the patterns above, `consult`, or "" for small talk."""
    asks = asked_of(text, roster)
    for patterns in (_STRONG, _WEAK):
        found = {"consult": asks.start()} if asks and patterns is _STRONG else {}
        found |= {name: match.start() for name, p in patterns.items() if (match := re.search(p, text, re.I))}
        if found:
            return min(found, key=lambda name: found[name])
    return ""


def words_of(text: str) -> str:
    """The longest word of a question that is worth searching for, else `def`."""
    words = [word for word in re.findall(r"\w+", text) if len(word) > 3 and not _PLAIN.fullmatch(word)]
    return max(words, key=len, default="def")


def _next(scene: Scene, name: str, arguments: Arguments, text: str = "") -> Move | None:
    """A call of a tool that is offered and was not yet called since the last message."""
    if name not in scene.offered or scene.called(name):
        return None
    return Move(text and f"{LABEL} {text}", ((name, arguments),))


# Chatter


def _chatter(scene: Scene) -> Move:
    heard = (*scene.before, scene.said)
    if not scene.offered and any(_SUMMARISE.match(text) for text in (heard[0], heard[-1])):
        told = [text.partition("\n[assistant]")[0] for text in heard if not _SUMMARISE.match(text)]
        return Move(f"{LABEL} Summary. The person said: " + "; ".join(clip(text, 120) for text in told))
    if scene.question == report.WHICH and scene.before and (name := _repository(scene, _chosen(scene))):
        return _build(replace(scene, said=report.inside(scene.before[-1], name)))
    return _TOPICS.get(topic(scene.said, scene.roster), _talk)(scene)


def _question(scene: Scene) -> str:
    return "\n".join((scene.said, *scene.added))


def _ask_planner(scene: Scene) -> Move | None:
    return _next(scene, "consult_planner", {"question": _question(scene)}, "I ask the Planner.")


def _ask_researcher(scene: Scene) -> Move | None:
    arguments = {"question": _question(scene), "repos": ["both"]}
    return _next(scene, "consult_researcher", arguments, "I ask the Researcher.")


def _plan(scene: Scene) -> Move:
    return _ask_planner(scene) or Move(report.told(scene, ("consult_planner",)))


def _research(scene: Scene) -> Move:
    return _ask_researcher(scene) or Move(report.told(scene, ("consult_researcher",)))


def _consult(scene: Scene) -> Move:
    match = asked_of(scene.said, scene.roster)
    agent = (match["known"] or match["called"]).lower() if match else ""
    if agent == "planner":
        return _plan(scene)
    if agent == "researcher":
        return _research(scene)
    if "consult_agent" in scene.offered:
        arguments = {"agent": agent, "question": _question(scene)}
        move = _next(scene, "consult_agent", arguments, f"I ask {agent}.")
        return move or Move(report.told(scene, ("consult_agent",)))
    move = _next(scene, "check_agent_status", {"agent": agent}, f"I look how {agent} is.")
    return move or Move(report.status(scene))


def _status(scene: Scene) -> Move:
    if "check_agent_status" in scene.offered and not scene.called("check_agent_status"):
        team = (*TEAM, *(name for name in scene.roster if name not in TEAM))
        return Move(calls=tuple(("check_agent_status", {"agent": agent}) for agent in team))
    return Move(report.status(scene))


def _decide(scene: Scene) -> Move:
    arguments = {
        "question": f"{LABEL} {clip(scene.said, 300)}",
        "options": _options(scene.said),
        "context": "The demo model does not decide for you: this is what an escalation looks like.",
    }
    return _next(scene, ESCALATE, arguments) or Move(
        f"{LABEL} That is yours to decide: {clip(scene.said, 300)}"
    )


def _options(text: str) -> list[str]:
    """The two sides of "between A and B" or "A or B", else ways to go on."""
    found = re.search(r"\bbetween\s+(.{1,60}?)\s+(?:and|or)\s+([^?.!,;]{1,60})", text, re.I) or re.search(
        r"([\w-]+)\s+or\s+([\w-]+)", text, re.I
    )
    if found:
        return [found[1].strip(), found[2].strip()]
    return ["Plan it first", "Build the simplest version", "Leave it"]


def _build(scene: Scene) -> Move:
    """Plan and research side by side; the plan's tasks begin by themselves, else one task is handed out.

    Where there are several repositories and none was named, the person is asked first: one thing lies in one.
    """
    if len(scene.repositories) > 1 and not build.where(scene.said):
        if name := _repository(scene, scene.said, r"\bin\s+(?:the\s+)?"):
            return _build(replace(scene, said=report.inside(scene.said, name)))
        context = "There are several, and what I build lies in one of them."
        asked_for = {"question": report.WHICH, "options": list(scene.repositories), "context": context}
        if move := _next(scene, ESCALATE, asked_for):
            return move
    if not (scene.called("consult_planner") or scene.called("consult_researcher")):
        asked: list[tuple[str, Arguments]] = [
            ("consult_planner", {"question": f"{build.WRITE} {_question(scene)}"}),
            ("consult_researcher", {"question": _question(scene), "repos": ["both"]}),
        ]
        if calls := tuple(call for call in asked if call[0] in scene.offered):
            return Move(calls=calls)
    if report.wrote(scene):
        return Move(report.begun(scene))
    agent = "frontend" if _FRONTEND.search(scene.said) else "backend"
    command = {"agent": agent, "command_file": report.command_file(scene), **build.where(scene.said)}
    move = _next(scene, "assign_task", command, f"I hand the task to {agent}.")
    return move or Move(report.assigned(scene, agent))


def _repository(scene: Scene, words: str, before: str = "") -> str:
    """The one repository that these words name, each behind what matches `before`."""
    found = [
        name
        for name in scene.repositories
        if re.search(rf"{before}(?<![\w-]){re.escape(name)}(?![\w-])", words, re.I)
    ]
    return found[0] if len(found) == 1 else ""


def _merge(scene: Scene) -> Move:
    """What holds the work of all is merged first, then what lies elsewhere; the person is asked for permission."""
    if move := _next(scene, "list_tasks", {"show_all": True}):
        return move
    states = build.states(scene)
    named = [name for name in re.findall(r"[a-z]+-[a-z]+(?:-\d+)?", scene.said.lower()) if name in states]
    planned = [task.task for task in scene.planned if task.task not in scene.merged]
    wanted = named or [task.task for task in build.last(scene.planned) if task.task in planned]
    told = [name for name in reversed(scene.told) if name in states and name not in scene.merged]
    if told and not named and told[0] not in {task.task for task in scene.planned}:
        # The newest work that the person heard of, whatever was planned before it; a person may have merged it.
        if "review_task" in scene.offered and not scene.called("review_task"):
            return Move(calls=tuple(("review_task", {"task_id": name}) for name in told[:_HEARD]))
        there = build.unmerged(scene) if "review_task" in scene.offered else told
        wanted, planned = [name for name in told if name in there][:1], []
    elif not scene.planned and not named and "review_task" in scene.offered:
        # The plan is no longer shown in a long conversation: what is done is looked at instead.
        if (done := build.done(states)) and not scene.called("review_task"):
            return Move(calls=tuple(("review_task", {"task_id": name}) for name in done))
        wanted = build.fullest(scene)
    ready = [name for name in wanted if states.get(name) in ("COMPLETED", "AWAITING_APPROVAL")]
    if ready and not named and ready == wanted:  # the others may lie in another repository
        others = [name for name in planned if name not in wanted and states.get(name) == "COMPLETED"]
        if scene.good("merge_task") and others and "review_task" in scene.offered:
            if not scene.called("review_task"):
                return Move(calls=tuple(("review_task", {"task_id": name}) for name in others))
            ready += build.unmerged(scene)
    tried = {str(call.input.get("task_id")) for call in scene.called("merge_task")}
    if "merge_task" in scene.offered and (left := [name for name in ready if name not in tried]):
        return Move(calls=tuple(("merge_task", {"task_id": name}) for name in left))
    return Move(report.merged(scene, states, [name for name in wanted if name not in ready]))


def _recall(scene: Scene) -> Move:
    if scene.before:
        return Move(f"{LABEL} Your message before this one was: “{clip(scene.before[-1], 500)}”")
    return Move(f"{LABEL} This is the first message of yours that I can see here.")


def _chosen(scene: Scene) -> str:
    """What was answered to a question: the option of that number, else the words."""
    number = scene.said.strip().rstrip(".")
    chosen = int(number) if number.isdecimal() and len(number) < 3 else 0
    return scene.options[chosen - 1] if 0 < chosen <= len(scene.options) else scene.said


def _talk(scene: Scene) -> Move:
    if scene.asked:
        return Move(f"{LABEL} Noted: “{clip(_chosen(scene), 300)}”. Say “build …” and I go on with it.")
    if len(scene.waits) == 1:  # words that are about nothing else answer the one question that is open
        [task] = scene.waits
        move = _next(
            scene, "answer_task", {"task_id": task, "answer": scene.said}, f"I hand that on to {task}."
        )
        return move or Move(report.told(scene, ("answer_task",)))
    return Move(report.greeting(scene))


# The others


def _planner(scene: Scene) -> Move:
    question = scene.said
    if question.startswith(build.WRITE):
        question = question.removeprefix(build.WRITE).strip()
        return _next(scene, "submit_plan", _handed(question, build.plan(question)) | {"write": True}) or Move(
            report.planned(scene)
        )
    return _next(scene, "submit_plan", _handed(question, _drawn(question))) or Move(report.planned(scene))


def _drawn(question: str) -> list[Arguments]:
    """Advice of one task or two: the server's side first where both are touched."""
    subject = clip(question, 100)
    front, back = bool(_FRONTEND.search(question)), bool(_BACKEND.search(question))
    agents = [agent for agent, touched in (("backend", back), ("frontend", front)) if touched]
    return [
        {
            "title": f"{agent.capitalize()}: {subject}",
            "description": f"Do the {agent}'s part of: {question.strip()}",
            "agent": agent,
            "depends_on": [place - 1] if place else [],
            "acceptance": ["A test shows that it works", "The tests that were there still pass"],
        }
        for place, agent in enumerate(agents or ["backend", "frontend"])
    ]


def _handed(question: str, tasks: list[Arguments]) -> Arguments:
    risks = ["This plan was drawn up by the demo model, which has not understood the question"]
    return {"summary": f"{LABEL} Plan for: {clip(question, 100)}", "tasks": tasks, "risks": risks}


_SEARCH: Arguments = {"case_insensitive": True, "max_results": 20}


def _researcher(scene: Scene) -> Move:
    word = words_of(scene.said)
    arguments: Arguments = {"pattern": word}
    arguments |= {field: value for field, value in _SEARCH.items() if scene.takes("grep", field)}
    if move := _next(scene, "grep", arguments):
        return move
    reports = scene.called("report_findings")
    if "report_findings" in scene.offered and (not reports or (len(reports) == 1 and reports[0].error)):
        findings = [] if reports else report.findings(scene, word)  # citations that were refused are left out
        return Move(calls=(("report_findings", _findings(findings, word)),))
    return Move(report.researched(scene, word))


def _findings(findings: list[Arguments], word: str) -> Arguments:
    advice = f"{LABEL} Read the places where “{word}” stands before changing anything"
    return {"findings": findings, "conflicts": [], "recommendations": [advice], "confidence": 0.5}


def _coder(scene: Scene) -> Move:
    if "create_file" not in scene.offered and not scene.calls:
        return Move(f"{LABEL} {scene.agent} here. I take command files; you asked: “{clip(scene.said, 300)}”")
    if not any(_HEADED.search(text) for text in (scene.said, *scene.before)):
        return _other(scene)  # a person's words, to an agent that could do a task
    corrects = scene.said.startswith(build.FOUND)
    command = next((t for t in (scene.said, *reversed(scene.before)) if not t.startswith(build.FOUND)), "")
    if made := build.file(command, corrects):
        arguments: Arguments = {"path": made.path, "content": made.content}
        words = f"I correct {made.path}." if corrects else f"I write {made.path}."
        move = _next(scene, "create_file", arguments, words)
        return move or Move(report.coded(scene, made.path, corrects))
    title = report.title(command)
    path = f"demo/{slug(title)}.md"
    content = f"# {title}\n\nMade by the demo model from the command file of this task.\n"
    return (
        _next(scene, "create_file", {"path": path, "content": content}, f"I write {path}.")
        or _next(scene, "bash", {"command": "ls demo"})
        or Move(report.coded(scene, path))
    )


def _other(scene: Scene) -> Move:
    return Move(f"{LABEL} {scene.agent or 'An agent'} here. You asked: “{clip(scene.said, 300)}”")


_TOPICS: dict[str, Callable[[Scene], Move]] = {
    "consult": _consult,
    "plan": _plan,
    "research": _research,
    "status": _status,
    "decide": _decide,
    "build": _build,
    "merge": _merge,
    "recall": _recall,
}
_PARTS: dict[str, Callable[[Scene], Move]] = {
    "chatter": _chatter,
    "planner": _planner,
    "researcher": _researcher,
}
