"""How the demo model puts into words what its calls brought."""

from __future__ import annotations

import re
from typing import Any

from shared.models.demo.scene import Scene, SceneCall, clip, dig

LABEL = "[demo]"
WHICH = f"{LABEL} In which repository?"
_SEVERAL = re.compile(r"several fit \w+: ([\w.-]*\w)")  # how a refusal names the repositories there are

_NAMES = {
    "consult_planner": "The Planner",
    "consult_researcher": "The Researcher",
    "assign_task": "Assigning the task",
    "check_agent_status": "The status",
}
_ADVICE = (
    "See who is there with `promptdock status`, start what is missing with `promptdock up`, then try again."
)
_HELP = """\
This is the demo model: it costs nothing, needs no key, and answers from a script. \
Set ANTHROPIC_API_KEY for a real one. You can try:
- “Plan a login page”: asks the Planner
- “Where is the configuration read?”: asks the Researcher, who searches the repositories
- “Build a guest book”: a plan of three tasks, two workers side by side, checks, and commits
- “Merge it”: asks for your permission, and brings the work into the default branch
- “Status”: what every agent is doing
- “Ask planner …”, “@researcher …”: asks one agent, also one of your own
- “Decide between SQLite and Postgres”: a question comes back to you
- “What did I say before?”: shows that the conversation is remembered"""


def greeting(scene: Scene) -> str:
    """Small talk: what this is, what one can try, and that it has listened."""
    heard = f"\n\nBefore this you said: “{clip(scene.before[-1], 200)}”" if scene.before else ""
    return f"{LABEL} Hello. {_HELP}{heard}"


def told(scene: Scene, names: tuple[str, ...]) -> str:
    """What these tools answered, or that they failed, or that they are not offered."""
    parts = [part for name in names for part in _parts(scene, name)]
    if scene.added:
        parts.append("You added: " + "; ".join(clip(text, 200) for text in scene.added))
    return f"{LABEL} " + "\n\n".join(parts)


def status(scene: Scene) -> str:
    """One line for each agent that was looked at."""
    calls = scene.called("check_agent_status")
    if not calls:
        return f"{LABEL} {_missing('check_agent_status')}"
    return f"{LABEL} Status:\n" + "\n".join(f"- {_state(call)}" for call in calls)


def assigned(scene: Scene, agent: str) -> str:
    """How the way from the plan to the task ended."""
    call = scene.good("assign_task")
    if call is None:
        words = told(scene, ("consult_planner", "consult_researcher", "assign_task"))
        return words + _which(scene)
    task = dig(call.data, "task_id", "id") or "without an id"
    place = dig(call.data, "queue_position", "position", "place")
    queued = f" It is number {place} in the queue." if place else ""
    failed = [part for name in ("consult_planner", "consult_researcher") for part in _failures(scene, name)]
    lines = [f"Task {task} is with {agent}.{queued} The outcome follows as soon as there is one.", *failed]
    return f"{LABEL} " + "\n\n".join(lines)


def _which(scene: Scene) -> str:
    """How the person can say it again, where several repositories fit."""
    found = next(
        (found for call in scene.called("assign_task") if (found := _SEVERAL.search(call.error))), None
    )
    return f"\n\nSay which one, e.g. “{inside(clip(scene.said, 80), found[1])}”." if found else ""


def inside(said: str, repository: str) -> str:
    """What was said, in that repository."""
    return f"{said.rstrip(' .!?')} in the repository {repository.strip()}"


def wrote(scene: Scene) -> bool:
    """Whether the plan that was asked for now has become tasks."""
    call = scene.good("consult_planner")
    return bool(scene.planned and call and isinstance(call.data, dict) and call.data.get("written"))


def begun(scene: Scene) -> str:
    """The plan whose tasks begin now, with their names."""
    several = len({task.repo for task in scene.planned}) > 1  # then it matters which
    lines = [
        f"{number}. {task.task}: {task.title} ({task.agent}{_in(task.repo) if several else ''}{_after(task.needs)})"
        for number, task in enumerate(scene.planned, 1)
    ]
    call = scene.good("consult_planner")
    waits = str(call.data.get("warning") or "") if call and isinstance(call.data, dict) else ""
    how = f"but nothing begins yet: {waits}" if waits else "and the work begins"
    parts = [f"The Planner has written the tasks, {how}:\n" + "\n".join(lines)]
    parts += (
        [f"The Researcher searched the code first:\n{_cited(call)}"]
        if (call := scene.good("consult_researcher"))
        else _failures(scene, "consult_researcher")
    )
    if scene.added:
        parts.append("You added: " + "; ".join(clip(text, 200) for text in scene.added))
    parts.append(
        "Those that wait for nothing are done side by side, each on a branch of its own. See them with "
        "`promptdock tasks`; how each comes out is told here. When the last one is done, say “merge it”."
    )
    return f"{LABEL} " + "\n\n".join(parts)


def _in(repo: str) -> str:
    return f" in {repo}" if repo else ""


def _after(needs: tuple[int, ...]) -> str:
    return f", after {' and '.join(str(index + 1) for index in needs)}" if needs else ""


def merged(scene: Scene, states: dict[str, str], left: list[str]) -> str:
    """What was merged, what was refused, and what is not ready to be merged."""
    parts = []
    for call in scene.called("merge_task"):
        data = call.data if isinstance(call.data, dict) else {}
        if call.error:
            parts.append(f"{call.input.get('task_id')} was not merged: {call.error}. {call.advice}".rstrip())
            continue
        files = ", ".join(f"`{name}`" for name in data.get("files", [])[:10])
        before = " It was merged before." if data.get("warning") else ""
        parts.append(f"{data.get('branch')} is merged into {data.get('into')}: {files}.{before}")
    parts += [f"{name} is not ready to be merged: it is {states.get(name, 'unknown')}." for name in left]
    if "list_tasks" not in scene.offered and not scene.calls:
        parts.append(_missing("list_tasks"))
    nothing = (
        "I know of nothing in this conversation that waits to be merged. `promptdock tasks` shows the tasks."
    )
    return f"{LABEL} " + "\n".join(parts or [nothing])


def command_file(scene: Scene) -> str:
    """A command file that is complete in itself: goal, plan, what was found, when it is done."""
    plan, found = scene.good("consult_planner"), scene.good("consult_researcher")
    goal = "\n".join((scene.said, *scene.added))
    return f"""\
# {clip(scene.said, 80)}

Written by the demo model.

## Goal

{goal}

## Plan

{_outline(plan) if plan else "There is no plan: the Planner did not answer."}

## What is there already

{_cited(found) if found else "Not known: the Researcher did not answer."}

## Done when

- a file in `demo/` says that the task was carried out
- the work is committed on the task's own branch
"""


def planned(scene: Scene) -> str:
    """The Planner's last words."""
    call = scene.good("submit_plan")
    if call:
        return f"{LABEL} The plan:\n" + _outline(SceneCall(call.name, {}, "", call.input))
    if scene.calls:
        return told(scene, ("submit_plan",))
    subject = clip(scene.said, 200)
    return f"{LABEL} A plan for “{subject}”: the server's part first, then the page, then test both."


def researched(scene: Scene, word: str) -> str:
    """The Researcher's last words."""
    call = scene.good("report_findings")
    lines = [_cited(SceneCall("", {}, "", call.input))] if call else []
    lines += [part for name in ("grep", "report_findings") for part in _failures(scene, name)]
    return f"{LABEL} I searched for “{word}”.\n" + "\n".join(lines or ["Nothing was found."])


def coded(scene: Scene, path: str, corrected: bool = False) -> str:
    """What a coding turn did."""
    failed = [part for name in ("create_file", "bash") for part in _failures(scene, name)]
    how = "corrected what its check found" if corrected else "made it from the command file"
    done = [f"`{path}`: I {how}."] if scene.good("create_file") else []
    return f"{LABEL} " + "\n\n".join(
        [*done, *failed] or ["Nothing was done: no tool to write with is offered."]
    )


def findings(scene: Scene, word: str) -> list[dict[str, Any]]:
    """Up to five findings from the matches of the search; a path is `repo/rest`."""
    call = scene.good("grep")
    matches = dig(call.data, "matches") if call else None
    made = []
    for match in matches if isinstance(matches, list) else []:
        repo, _, file = str(match.get("path", "")).partition("/")
        text = str(match.get("text", "")).strip()
        if file and match.get("line") and 0 < len(text) <= 200:
            claim = f"“{word}” is mentioned here"
            made.append({"repo": repo, "file": file, "line": match["line"], "text": text, "claim": claim})
    return made[:5]


def title(command: str) -> str:
    """The first heading of a command file, else its first line."""
    heading = re.search(r"^#+\s+(\S.*)$", command, re.MULTILINE)
    lines = command.strip().splitlines()
    return clip(heading[1] if heading else lines[0] if lines else "task", 80)


def _parts(scene: Scene, name: str) -> list[str]:
    if not scene.called(name):
        return [] if name in scene.offered else [_missing(name)]
    call = scene.good(name)
    return [f"{_name(call)} answers:\n{_content(call)}"] if call else _failures(scene, name)


def _failures(scene: Scene, name: str) -> list[str]:
    calls = scene.called(name)
    if not calls or not calls[-1].error:
        return []
    call = calls[-1]
    return [f"{_name(call)} failed: {call.error.rstrip('.')}. {call.advice or _ADVICE}"]


def _missing(name: str) -> str:
    return f"`{name}` is not offered to me here, so I cannot go on with that."


def _name(call: SceneCall) -> str:
    if call.name == "consult_agent":
        return str(call.input.get("agent", "the agent")).capitalize()
    return _NAMES.get(call.name, f"`{call.name}`")


def _content(call: SceneCall) -> str:
    return {"consult_planner": _outline, "consult_researcher": _cited}.get(call.name, _plain)(call)


def _plain(call: SceneCall) -> str:
    said = dig(call.data, "summary", "answer", "text", "content", "message")
    return clip(said if isinstance(said, str) else call.text, 800)


def _outline(call: SceneCall) -> str:
    tasks = dig(call.data, "tasks")
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        return _plain(call)
    lines = [f"{n}. {t.get('title', '?')} ({t.get('agent', 'anyone')})" for n, t in enumerate(tasks, 1)]
    return "\n".join(lines)


def _cited(call: SceneCall) -> str:
    places = dig(call.data, "citations") or dig(call.data, "findings")
    if isinstance(places, list):
        return "\n".join(f"- {_citation(place)}" for place in places) or "No findings."
    if isinstance(places, dict):
        return "\n".join(f"- {name}: {text}" for name, text in places.items())
    empty = isinstance(call.data, dict) and "findings" in call.data
    return "No findings." if empty else _plain(call)


def _citation(place: Any) -> str:
    if not isinstance(place, dict):
        return clip(str(place), 300)
    where = f"{place.get('repo', '?')}/{place.get('file', '?')}:{place.get('line', '?')}"
    return f"{clip(str(place.get('claim') or place.get('text') or ''), 200)} (`{where}`)"


def _state(call: SceneCall) -> str:
    agent = call.input.get("agent", "agent")
    if call.error:
        return f"{agent}: {call.error}. {call.advice or _ADVICE}"
    online = call.data.get("online") if isinstance(call.data, dict) else None
    known = {True: "online", False: "offline"}.get(online) if isinstance(online, bool) else None
    state = dig(call.data, "status", "state") or known or clip(call.text, 200)
    current = dig(call.data, "current", "working_on", "current_task")
    return f"{agent}: {state}" + (f", works on {clip(str(current), 100)}" if current else "")
