"""The demo model: a pure function that walks every path of the cluster."""

from __future__ import annotations

import copy
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from shared.conversation import prompt, summary
from shared.models.base import Answer, Block, Delta, ModelMessage, Request, ToolSpec, Usage
from shared.models.demo import DemoModel, build
from shared.models.demo.build import slug
from shared.models.demo.script import topic, words_of
from shared.tasks.worktree.checks import Ran, feedback
from shared.tasks.worktree.receipt import CheckRun
from shared.tools.files import browse
from shared.tools.research import report as research
from shared.tools.tasks import planning, plans
from shared.worker.runners import question
from tests.models.conftest import heard
from tests.support.messages_check import complaint
from tests.support.pictures import picture

CHATTER = ("consult_planner", "consult_researcher", "assign_task", "check_agent_status", "escalate_to_human")
PLAN = {"plan": {"summary": "s", "tasks": [{"title": "Add the route", "agent": "backend", "depends_on": []}]}}
FOUND = {
    "findings": {"backend": "Routes are here", "frontend": "No findings."},
    "citations": [{"repo": "api", "file": "app.py", "line": 3, "claim": "The route is here"}],
    "confidence": 0.5,
}
OFFLINE = {"error": "the planner is offline", "fix": "start it with: promptdock up"}


class Talk:
    """A conversation with the demo model, in which the test plays the tools."""

    def __init__(self, agent: str = "chatter", tools: tuple[str, ...] = CHATTER, schema: Any = None) -> None:
        self.agent = agent
        self.tools = tuple(ToolSpec(name, "", schema or {"type": "object"}) for name in tools)
        self.system: tuple[str, ...] = ("system",)
        self.messages: list[ModelMessage] = []
        self.deltas: list[Delta] = []

    @property
    def request(self) -> Request:
        return Request("demo", self.system, tuple(self.messages), self.tools, agent=self.agent)

    async def ask(self) -> Answer:
        """One answer to the conversation so far, which the real API would take too."""
        request = self.request
        body = {"model": "m", "max_tokens": 1, "messages": list(request.messages)}
        assert complaint(body) == ""
        answer = await DemoModel().answer(request, self.deltas.append)
        self.messages.append({"role": "assistant", "content": list(answer.content)})
        return answer

    async def say(self, text: str) -> Answer:
        self.messages.append({"role": "user", "content": f"[from Ann]: {text}"})
        return await self.ask()

    async def reply(self, *results: Any, error: bool = False) -> Answer:
        """Give the calls of the last answer these results."""
        calls = [block for block in self.messages[-1]["content"] if block["type"] == "tool_use"]
        content = [
            {
                "type": "tool_result",
                "tool_use_id": call["id"],
                "content": result if isinstance(result, str) else json.dumps(result),
                "is_error": error,
            }
            for call, result in zip(calls, results, strict=True)
        ]
        self.messages.append({"role": "user", "content": content})
        return await self.ask()


def calls(answer: Answer) -> list[tuple[str, dict[str, Any]]]:
    return [(block["name"], block["input"]) for block in answer.content if block["type"] == "tool_use"]


def text(answer: Answer) -> str:
    return "".join(block["text"] for block in answer.content if block["type"] == "text")


def ids(message: ModelMessage) -> list[str]:
    content: list[Block] = message["content"]
    return [block["id"] for block in content if block["type"] == "tool_use"]


async def test_a_greeting_is_answered_and_says_that_it_is_the_demo() -> None:
    talk = Talk()
    answer = await talk.say("Hello")
    assert calls(answer) == []
    assert "demo" in text(answer)
    assert "You can try" in text(answer)
    assert (answer.stop_reason, answer.demo, answer.model) == ("end_turn", True, "demo")
    assert heard(talk.deltas, "text") == text(answer)
    assert 1 < len(talk.deltas) <= 4


@pytest.mark.parametrize("said", ["Hello", "Plan a page", "Build a button", "Status", "Decide: A or B"])
async def test_the_same_request_gets_the_same_answer_and_is_left_as_it_was(said: str) -> None:
    talk = Talk()
    await talk.say(said)
    talk.messages.pop()
    before = copy.deepcopy(talk.messages)
    first, second = await DemoModel().answer(talk.request), await DemoModel().answer(talk.request)
    assert first == second
    assert talk.messages == before


async def test_its_tokens_are_counted_and_cost_nothing() -> None:
    usage = (await Talk().say("Hello")).usage
    assert usage.input > 0
    assert usage.output > 0
    assert usage == Usage(usage.input, usage.output, cost=0.0)


async def test_it_lists_itself_and_needs_no_key() -> None:
    assert await DemoModel().models() == ["demo"]
    await DemoModel().check()


async def test_a_plan_is_asked_of_the_planner_and_told() -> None:
    talk = Talk()
    answer = await talk.say("Plan a user authentication system")
    assert calls(answer) == [("consult_planner", {"question": "Plan a user authentication system"})]
    assert answer.stop_reason == "tool_use"
    last = await talk.reply(PLAN)
    assert calls(last) == []
    assert "1. Add the route (backend)" in text(last)


@pytest.mark.parametrize("said", ["Research the routes", "Look at the routes", "Where are the routes?"])
async def test_research_is_asked_of_the_researcher_and_told_with_citations(said: str) -> None:
    talk = Talk()
    assert calls(await talk.say(said)) == [("consult_researcher", {"question": said, "repos": ["both"]})]
    assert "The route is here (`api/app.py:3`)" in text(await talk.reply(FOUND))


async def test_findings_without_citations_are_told_as_they_are() -> None:
    talk = Talk()
    await talk.say("Find the routes")
    assert "backend: No auth" in text(await talk.reply({"findings": {"backend": "No auth"}}))


@pytest.mark.parametrize(
    ("said", "tool", "part"),
    [
        ("Check with planner", "consult_planner", {}),
        ("Please ask the researcher about it", "consult_researcher", {}),
        ("Check with backend worker", "consult_agent", {"agent": "backend"}),
        ("Ask the frontend how it is going", "consult_agent", {"agent": "frontend"}),
        ("Ask the reviewer agent", "consult_agent", {"agent": "reviewer"}),
    ],
)
async def test_an_agent_that_is_named_is_asked(said: str, tool: str, part: dict[str, str]) -> None:
    talk = Talk(tools=(*CHATTER, "consult_agent"))
    [(name, arguments)] = calls(await talk.say(said))
    assert name == tool
    assert arguments.items() >= {**part, "question": said}.items()
    assert "hello from there" in text(await talk.reply({"answer": "hello from there"}))


@pytest.mark.parametrize(
    ("said", "agent"),
    [
        ("ask reviewer to look at the last change", "reviewer"),
        ("@reviewer what do you think?", "reviewer"),
        ("Please check with code.smith, then build it", "code.smith"),
        ("consult @Reviewer about the plan", "reviewer"),
    ],
)
async def test_an_agent_of_ones_own_is_asked_by_its_name(said: str, agent: str) -> None:
    talk = Talk(tools=(*CHATTER, "consult_agent"))
    about = {"backend": "builds", "chatter": "", "code.smith": "", "reviewer": "reads code"}
    talk.system = prompt.compose("You are Chatter.", roster=about, repositories="")
    assert calls(await talk.say(said)) == [("consult_agent", {"agent": agent, "question": said})]
    assert "It looks well" in text(await talk.reply({"answer": "It looks well"}))


async def test_who_is_no_agent_is_not_asked_and_an_address_names_nobody() -> None:
    talk = Talk(tools=(*CHATTER, "consult_agent"))
    talk.system = prompt.compose("You are Chatter.", roster={"reviewer": ""}, repositories="")
    for said in ("ask bob about it", "write to me@reviewer.example", "ask reviewers"):
        assert calls(await talk.say(said)) == []


async def test_the_status_has_agents_of_ones_own_too() -> None:
    talk = Talk()
    talk.system = prompt.compose("", roster={"chatter": "", "reviewer": ""}, repositories="")
    names = [arguments["agent"] for _, arguments in calls(await talk.say("status"))]
    assert names == ["planner", "researcher", "frontend", "backend", "reviewer"]


async def test_a_worker_that_cannot_be_asked_is_looked_at() -> None:
    talk = Talk()
    answer = await talk.say("Check with backend worker")
    assert calls(answer) == [("check_agent_status", {"agent": "backend"})]
    assert "backend: offline" in text(await talk.reply({"agent": "backend", "online": False}))


async def test_status_looks_at_all_four_agents_at_once() -> None:
    talk = Talk()
    answer = await talk.say("status?")
    assert [arguments["agent"] for _, arguments in calls(answer)] == [
        "planner",
        "researcher",
        "frontend",
        "backend",
    ]
    busy = {"status": "busy", "current": "a login page"}
    last = text(await talk.reply({"status": "online"}, busy, {"online": True}, OFFLINE))
    for line in ("planner: online", "researcher: busy, works on a login page", "frontend: online"):
        assert line in last
    assert "backend: the planner is offline. start it" in last


async def test_a_decision_goes_back_to_the_person_and_the_answer_is_noted() -> None:
    talk = Talk()
    [(name, arguments)] = calls(await talk.say("Decide between SQLite and Postgres, please"))
    assert name == "escalate_to_human"
    assert arguments["options"] == ["SQLite", "Postgres"]
    assert arguments["question"]
    assert arguments["context"]
    result = {"type": "tool_result", "tool_use_id": ids(talk.messages[-1])[0], "content": "{}"}
    said = {"type": "text", "text": "[from Ann]: SQLite"}
    talk.messages.append({"role": "user", "content": [result, said]})
    assert "Noted: “SQLite”" in text(await talk.ask())
    assert "Your message before this one was: “SQLite”" in text(await talk.say("What did I say?"))


@pytest.mark.parametrize(
    ("said", "agent"),
    [
        ("Build a button on the page", "frontend"),
        ("Implement the login", "backend"),
        ("fix the CSS", "frontend"),
    ],
)
async def test_building_without_a_written_plan_goes_over_plan_and_research_to_a_task(
    said: str, agent: str
) -> None:
    talk = Talk()
    assert calls(await talk.say(said)) == [
        ("consult_planner", {"question": f"{build.WRITE} {said}"}),
        ("consult_researcher", {"question": said, "repos": ["both"]}),
    ]
    [(name, arguments)] = calls(await talk.reply(PLAN, FOUND))
    assert (name, arguments["agent"]) == ("assign_task", agent)
    for part in (f"# {said}", "1. Add the route (backend)", "`api/app.py:3`", "## Done when"):
        assert part in arguments["command_file"]
    last = await talk.reply({"task_id": "brisk-otter", "status": "assigned"})
    assert calls(last) == []
    assert f"Task brisk-otter is with {agent}" in text(last)
    assert "outcome follows" in text(last)


async def test_a_failure_is_said_plainly_with_what_to_do() -> None:
    talk = Talk()
    await talk.say("Plan a page")
    last = text(await talk.reply(OFFLINE))
    assert "The Planner failed: the planner is offline. start it with: promptdock up" in last


@pytest.mark.parametrize("result", ["it went wrong", {"status": "timeout"}, {"state": "offline"}])
async def test_a_failure_without_advice_gets_ours(result: Any) -> None:
    talk = Talk()
    await talk.say("Plan a page")
    last = text(await talk.reply(result, error=isinstance(result, str)))
    assert "The Planner failed: " in last
    assert "promptdock status" in last


async def test_a_task_that_is_refused_names_all_that_failed() -> None:
    talk = Talk()
    await talk.say("Build the login")
    [(name, arguments)] = calls(await talk.reply(OFFLINE, FOUND))
    assert name == "assign_task"
    assert "There is no plan" in arguments["command_file"]
    last = text(await talk.reply({"error": "not validated", "why": "there is no plan"}, error=True))
    assert "the planner is offline" in last
    assert "Assigning the task failed: not validated: there is no plan" in last


async def test_the_message_before_is_remembered() -> None:
    talk = Talk()
    await talk.say("My favourite colour is teal")
    assert "My favourite colour is teal" in text(await talk.say("What did I say before?"))
    assert "first message" in text(await Talk().say("Do you remember me?"))


async def test_small_talk_shows_that_it_has_listened() -> None:
    talk = Talk()
    await talk.say("Good morning")
    assert "Before this you said: “Good morning”" in text(await talk.say("Use JWT tokens"))


async def test_what_is_added_while_it_runs_reaches_the_worker() -> None:
    talk = Talk()
    await talk.say("Build the login")
    content = [
        {"type": "tool_result", "tool_use_id": id, "content": json.dumps(result)}
        for id, result in zip(ids(talk.messages[-1]), (PLAN, FOUND), strict=True)
    ]
    talk.messages.append(
        {"role": "user", "content": [*content, {"type": "text", "text": "[from Ann]: with JWT"}]}
    )
    [(name, arguments)] = calls(await talk.ask())
    assert name == "assign_task" and "Build the login\nwith JWT" in arguments["command_file"]


async def test_a_tool_that_is_not_offered_is_never_called() -> None:
    for said in ("Plan it", "Find it", "Status", "Decide it", "Build it", "Check with backend"):
        answer = await Talk(tools=("list_tasks",)).say(said)
        assert calls(answer) == []
        assert "demo" in text(answer)


async def test_without_tools_it_still_says_what_was_done() -> None:
    talk = Talk()
    await talk.say("Build the login")
    await talk.reply(PLAN, FOUND)
    talk.messages.pop()
    talk.messages[-1]["content"].append({"type": "text", "text": "[You have reached a limit of this turn.]"})
    talk.tools = ()
    answer = await talk.ask()
    assert calls(answer) == []
    assert "Add the route" in text(answer)


async def test_a_note_of_the_harness_is_not_taken_for_the_person() -> None:
    talk = Talk()
    await talk.say("My name is Ann")
    await talk.say("What did I say before?")
    talk.messages.append({"role": "user", "content": "[continue where the answer was cut off]"})
    assert "My name is Ann" in text(await talk.ask())


async def test_calls_of_one_conversation_never_share_an_id() -> None:
    talk = Talk()
    for _ in range(3):
        await talk.say("Status")
        await talk.reply(*[{"status": "online"}] * 4)
    seen = [name for message in talk.messages if message["role"] == "assistant" for name in ids(message)]
    assert len(set(seen)) == len(seen) == 12


async def test_the_planner_hands_in_a_plan_that_its_tool_takes() -> None:
    talk = Talk("planner", ("submit_plan",))
    [(name, arguments)] = calls(await talk.say("a login page with an API route"))
    assert name == "submit_plan"
    assert [task["agent"] for task in arguments["tasks"]] == ["backend", "frontend"]
    assert arguments["tasks"][1]["depends_on"] == [0]
    [tool] = [tool for tool in planning.category.tools if tool.name == "submit_plan"]
    plans.validate(tool.check(arguments)["tasks"])
    last = await talk.reply({"plan": arguments, "order": [0, 1]})
    assert calls(last) == []
    assert "1. Backend: a login page with an API route (backend)" in text(last)


async def written(
    talk: Talk, said: str = "Build a guest book with an API", **more: str
) -> list[dict[str, Any]]:
    """A conversation in which the demo's own plan was written; its tasks."""
    await talk.say(said)
    planner = Talk("planner", ("submit_plan",))
    [(_, plan)] = calls(await planner.say(f"{build.WRITE} {said}"))
    assert plan["write"] is True
    [tool] = [tool for tool in planning.category.tools if tool.name == "submit_plan"]
    plans.validate(tool.check(plan)["tasks"])
    rows = [{"index": n, "task_id": f"brisk-otter-{n}", "status": "READY"} for n in range(3)]
    answer = await talk.reply({"plan": plan, "written": rows, **more}, FOUND)
    assert calls(answer) == []
    return list(plan["tasks"])


async def test_a_sentence_becomes_two_tasks_side_by_side_and_one_that_needs_both() -> None:
    talk = Talk()
    tasks = await written(talk)
    assert [(task["agent"], task["depends_on"]) for task in tasks] == [
        ("backend", []),
        ("frontend", []),
        ("backend", [0, 1]),
    ]
    told = str(talk.messages[-1]["content"][0]["text"])
    assert "1. brisk-otter-0: Data for a guest book with an API (backend)" in told
    assert "3. brisk-otter-2: Put together a guest book with an API (backend, after 1 and 2)" in told
    assert "merge it" in told


async def test_in_a_paused_project_it_is_not_said_that_the_work_begins() -> None:
    talk = Talk()
    await written(talk, warning="project shop is paused")
    told = str(talk.messages[-1]["content"][0]["text"])
    assert "nothing begins yet: project shop is paused" in told and "work begins" not in told


def test_the_titles_of_a_plan_for_a_page_say_page_once() -> None:
    titles = [task["title"] for task in build.plan("Build a page for dogs")]
    assert titles == ["Data for a page for dogs", "Page for dogs", "Put together a page for dogs"]


async def test_what_another_agent_asks_is_taken_from_its_message() -> None:
    talk = Talk()
    asked = json.dumps({"question": "Build a kennel", "hook": "watch"})
    talk.messages.append({"role": "user", "content": f"[question from agent hooks]: {asked}"})
    found = dict(calls(await talk.ask()))
    assert found["consult_planner"]["question"] == f"{build.WRITE} Build a kennel"


@pytest.mark.parametrize("agent", ["frontend", "mason"])
async def test_a_planned_file_is_left_unfinished_once_and_corrected_when_its_check_says_so(
    agent: str, tmp_path: Path
) -> None:
    def checked(command: str) -> int:
        return subprocess.run(command, shell=True, cwd=tmp_path, check=False).returncode

    page = (await written(Talk()))[1]
    talk = Talk(agent, ("create_file", "bash"))
    [(name, first)] = calls(await talk.say(f"[task t]\n\n# {page['title']}\n\n{page['description']}"))
    await talk.reply({"path": first["path"]})
    ran = Ran(CheckRun(command=page["checks"][0], exit_code=1, check=True), "")
    [(again, second)] = calls(await talk.say(feedback([ran])))
    assert (name, again, first["path"]) == ("create_file", "create_file", "demo/guest-book/index.html")
    for made, code in ((first, 1), (second, 0)):
        (tmp_path / made["path"]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / made["path"]).write_text(made["content"])
        assert checked(page["checks"][0]) == code
    assert "corrected" in text(await talk.reply({"path": second["path"]}))


async def test_the_work_of_a_plan_is_merged_by_the_task_that_holds_it_all() -> None:
    talk = Talk(tools=(*CHATTER, "list_tasks", "merge_task"))
    await written(talk)
    assert calls(await talk.say("Merge it")) == [("list_tasks", {"show_all": True})]
    rows = [{"id": f"brisk-otter-{n}", "status": "COMPLETED"} for n in range(3)]
    assert calls(await talk.reply({"tasks": rows})) == [("merge_task", {"task_id": "brisk-otter-2"})]
    done = {"merged": "brisk-otter-2", "branch": "promptdock/brisk-otter-2", "into": "main", "files": ["a"]}
    last = await talk.reply(done)
    assert "promptdock/brisk-otter-2 is merged into main: `a`." in text(last)
    await talk.say("Merge it")
    assert "nothing" in text(await talk.reply({"tasks": rows}))


@pytest.mark.parametrize(
    "words", ["Merge it", "please merge the branch now", "go ahead and merge", "land it", "Ship the work"]
)
async def test_a_merge_that_was_denied_is_asked_for_again(words: str) -> None:
    talk = Talk(tools=(*CHATTER, "list_tasks", "merge_task", "review_task"))
    await written(talk)
    rows = {"tasks": [{"id": f"brisk-otter-{n}", "status": "COMPLETED"} for n in range(3)]}
    for said in ("Merge it", words):
        assert calls(await talk.say(said)) == [("list_tasks", {"show_all": True})]
        assert calls(await talk.reply(rows)) == [("merge_task", {"task_id": "brisk-otter-2"})]
        denied = await talk.reply({"error": "not allowed", "why": "ann denied it: not today"}, error=True)
        assert "brisk-otter-2 was not merged: not allowed: ann denied it: not today" in text(denied)


async def test_what_lies_in_another_repository_is_merged_after_it() -> None:
    talk = Talk(tools=(*CHATTER, "list_tasks", "merge_task", "review_task"))
    await written(talk)
    await talk.say("Merge it")
    await talk.reply({"tasks": [{"id": f"brisk-otter-{n}", "status": "COMPLETED"} for n in range(3)]})
    done = {"merged": "brisk-otter-2", "branch": "promptdock/brisk-otter-2", "into": "main", "files": ["a"]}
    others = [("review_task", {"task_id": f"brisk-otter-{n}"}) for n in (0, 1)]
    assert calls(await talk.reply(done)) == others
    here = {"task_id": "brisk-otter-0", "files": [{}], "merged": True}  # it came along
    there = {"task_id": "brisk-otter-1", "files": [{}], "merged": False}
    assert calls(await talk.reply(here, there)) == [("merge_task", {"task_id": "brisk-otter-1"})]
    last = text(await talk.reply(done | {"branch": "promptdock/brisk-otter-1"}))
    assert "promptdock/brisk-otter-2 is merged" in last and "promptdock/brisk-otter-1 is merged" in last


async def test_a_merge_is_found_again_when_the_plan_is_no_longer_shown() -> None:
    talk = Talk(tools=(*CHATTER, "list_tasks", "merge_task", "review_task"))
    await talk.say("merge it")
    rows = [{"id": "calm-fox", "status": "COMPLETED"}, {"id": "brisk-otter", "status": "COMPLETED"}]
    looked = calls(await talk.reply({"tasks": [*rows, {"id": "wild-lynx", "status": "READY"}]}))
    assert looked == [("review_task", {"task_id": "calm-fox"}), ("review_task", {"task_id": "brisk-otter"})]
    found = ({"task_id": "calm-fox", "files": [{}]}, {"task_id": "brisk-otter", "files": [{}, {}]})
    assert calls(await talk.reply(*found)) == [("merge_task", {"task_id": "brisk-otter"})]
    last = await talk.reply({"error": "not allowed", "why": "ann denied it"})
    assert calls(last) == [] and "brisk-otter was not merged" in text(last)


def _outcome(task: str, how: str = ": completed.") -> ModelMessage:
    words = f"[outcome of a task, told to the person already]: Task {task} (Do (it)) by backend{how}"
    return {"role": "user", "content": words}


async def test_what_the_person_was_told_of_last_is_merged_before_an_older_plan() -> None:
    talk = Talk(tools=(*CHATTER, "list_tasks", "merge_task", "review_task"))
    await written(talk)
    names = [*(f"brisk-otter-{n}" for n in range(3)), "calm-fox", "warm-ivy", "wild-lynx"]
    for name in names[:5]:
        talk.messages += [_outcome(name), {"role": "assistant", "content": "Noted."}]
    talk.messages += [_outcome("wild-lynx", " failed: it broke"), {"role": "assistant", "content": "Noted."}]
    await talk.say("Merge it")
    looked = calls(await talk.reply({"tasks": [{"id": name, "status": "COMPLETED"} for name in names]}))
    assert [given["task_id"] for _, given in looked][:3] == ["warm-ivy", "calm-fox", "brisk-otter-2"]
    found: list[dict[str, Any]] = [{"task_id": given["task_id"], "files": [{}]} for _, given in looked]
    found[0] |= {"merged": True}  # by the person's own command
    assert calls(await talk.reply(*found)) == [("merge_task", {"task_id": "calm-fox"})]
    done = {"merged": "calm-fox", "branch": "promptdock/calm-fox", "into": "main", "files": ["a"]}
    last = await talk.reply(done | {"came_with_it": ["warm-ivy"]})
    assert calls(last) == [] and "promptdock/calm-fox is merged into main" in text(last)
    await talk.say("Merge it")
    rows = {"tasks": [{"id": name, "status": "COMPLETED"} for name in names]}
    assert calls(await talk.reply(rows)) == [("merge_task", {"task_id": "brisk-otter-2"})], "what is left"


async def test_what_is_not_done_is_not_merged() -> None:
    talk = Talk(tools=(*CHATTER, "list_tasks", "merge_task"))
    await written(talk)
    await talk.say("merge it")
    answer = await talk.reply({"tasks": [{"id": "brisk-otter-2", "status": "IN_PROGRESS"}]})
    assert calls(answer) == [] and "brisk-otter-2 is not ready to be merged: it is IN_PROGRESS" in text(
        answer
    )


async def test_a_task_that_is_named_is_the_one_that_is_merged() -> None:
    talk = Talk(tools=(*CHATTER, "list_tasks", "merge_task"))
    await talk.say("Please merge calm-fox")
    rows = [{"id": "calm-fox", "status": "COMPLETED"}, {"id": "brisk-otter", "status": "COMPLETED"}]
    assert calls(await talk.reply({"tasks": rows})) == [("merge_task", {"task_id": "calm-fox"})]
    refused = text(await talk.reply({"error": "not allowed", "why": "ann denied it"}, error=True))
    assert "calm-fox was not merged: not allowed: ann denied it" in refused


async def test_the_researcher_searches_and_reports_what_it_found() -> None:
    grep, report = (
        tool
        for category in (browse.category, research.category)
        for tool in category.tools
        if tool.name in ("grep", "report_findings")
    )
    talk = Talk("researcher", ("grep", "report_findings"), grep.schema)
    [(name, arguments)] = calls(await talk.say("Where is authentication implemented?"))
    assert name == "grep"
    assert arguments == {"pattern": "authentication", "case_insensitive": True, "max_results": 20}
    assert grep.check(arguments)
    match = {"path": "api/src/auth.py", "line": 7, "text": "    def authentication():"}
    minified = {"path": "api/auth.min.js", "line": 1, "text": "authentication;" * 40}
    [(name, arguments)] = calls(
        await talk.reply({"matches": [minified, match, {"path": "x", "line": 1, "text": ""}]})
    )
    assert name == "report_findings"
    assert report.check(arguments)
    [finding] = arguments["findings"]
    assert finding.items() >= {"repo": "api", "file": "src/auth.py", "line": 7}.items()
    assert finding["text"] == "def authentication():"
    assert (arguments["conflicts"], arguments["confidence"]) == ([], 0.5)
    last = await talk.reply({"ok": True})
    assert calls(last) == []
    assert "`api/src/auth.py:7`" in text(last)


async def test_citations_that_are_refused_are_left_out() -> None:
    talk = Talk("researcher", ("grep", "report_findings"))
    await talk.say("authentication")
    await talk.reply({"matches": [{"path": "api/a.py", "line": 1, "text": "authentication"}]})
    [(name, arguments)] = calls(await talk.reply({"error": "wrong"}))
    assert (name, arguments["findings"]) == ("report_findings", [])
    assert calls(await talk.reply({"error": "wrong again"})) == []


async def test_a_search_that_fails_leads_to_an_empty_report() -> None:
    talk = Talk("researcher", ("grep", "report_findings"))
    await talk.say("authentication")
    [(name, arguments)] = calls(await talk.reply({"error": "no repository is registered"}))
    assert (name, arguments["findings"]) == ("report_findings", [])
    assert "no repository is registered" in text(await talk.reply({"ok": True}))


@pytest.mark.parametrize("agent", ["frontend", "backend"])
async def test_a_coding_turn_makes_a_file_and_looks_at_it(agent: str) -> None:
    talk = Talk(agent, ("create_file", "str_replace", "view", "bash"))
    [(name, arguments)] = calls(await talk.say("# Add a *Login* button\n\n## Goal\n\nA button."))
    assert (name, arguments["path"]) == ("create_file", "demo/add-a-login-button.md")
    assert "demo model" in arguments["content"]
    assert calls(await talk.reply({"path": "demo/add-a-login-button.md"})) == [
        ("bash", {"command": "ls demo"})
    ]
    last = await talk.reply({"exit_code": 0, "stdout": "add-a-login-button.md"})
    assert calls(last) == []
    assert "demo/add-a-login-button.md" in text(last)


async def test_a_file_that_could_not_be_made_is_not_claimed() -> None:
    talk = Talk("backend", ("create_file",))
    await talk.say("# A task")
    last = text(await talk.reply({"error": "the disk is full"}))
    assert "failed: the disk is full" in last
    assert "I made" not in last


@pytest.mark.parametrize("agent", ["frontend", "reviewer", ""])
async def test_an_agent_without_a_part_answers_in_words(agent: str) -> None:
    answer = await Talk(agent, ()).say("What do you think?")
    assert calls(answer) == []
    assert "What do you think?" in text(answer)
    assert "demo" in text(answer)


async def test_a_summary_holds_what_the_person_said() -> None:
    talk = Talk()
    await talk.say("My project is called Heron")
    talk.tools = ()
    assert "My project is called Heron" in text(await talk.say("Summarize the conversation so far"))


async def test_a_long_conversation_is_summarised_in_the_persons_words() -> None:
    said = {"role": "user", "content": [{"type": "text", "text": "[from Ann]: My project is called Heron"}]}
    window = [{"seq": n, "turn": str(n), **said} for n in range(1, 4)]
    answer = await DemoModel().answer(summary.request("demo", "chatter", "", window))
    assert text(answer).count("My project is called Heron") == 3
    talk = Talk()
    talk.messages = summary.opening(summary.record(text(answer), 1, 3), 0)
    assert "Before this you said" not in text(await talk.say("Hello"))


@pytest.mark.parametrize(
    ("said", "about"),
    [
        ("Hello", ""),
        ("Build a status page that shows where we are", "build"),
        ("make a plan for it", "plan"),
        ("Find where we create users", "research"),
        ("which one?", "decide"),
        ("Show me a demo", "build"),
        ("What did I say?", "recall"),
        ("I told you before", "recall"),
        ("The plant is in the address book", ""),
    ],
)
def test_what_stands_first_in_a_message_decides(said: str, about: str) -> None:
    assert topic(said) == about


def test_the_longest_word_that_means_something_is_searched_for() -> None:
    assert words_of("Where is the implementation of the session_store?") == "session_store"
    assert words_of("?") == "def"


def test_a_title_becomes_a_file_name() -> None:
    assert slug("../../etc/Pass wd!") == "etc-pass-wd"
    assert slug("…") == "task"


def test_the_repository_that_the_person_names_is_that_of_every_planned_task() -> None:
    tasks = build.plan("Build a fence in the repository `shop-2`.")
    assert [(task["title"], task["repo"]) for task in tasks] == [
        ("Data for a fence", "shop-2"),
        ("Page for a fence", "shop-2"),
        ("Put together a fence", "shop-2"),
    ]
    assert all("repo" not in task for task in build.plan("Build a fence in the garden"))


async def test_a_number_picks_an_option_of_its_question_and_another_one_is_taken_as_said() -> None:
    for said, noted in (("2", "coffee"), ("7", "7"), ("tea", "tea")):
        talk = Talk()
        await talk.say("Decide between tea and coffee")
        call = ids(talk.messages[-1])[0]
        answer = {"type": "tool_result", "tool_use_id": call, "content": '{"status": "waiting"}'}
        words = {"type": "text", "text": f"[from Ann]: {said}"}
        talk.messages.append({"role": "user", "content": [answer, words]})
        assert f"Noted: “{noted}”" in text(await talk.ask())


def among(talk: Talk, *repositories: str) -> Talk:
    """The same, in a project with these repositories."""
    listed = "\n".join(f"- {name} (both): /src/{name}" for name in repositories)
    talk.system = prompt.compose("You are Chatter.", roster={}, repositories=listed)
    return talk


@pytest.mark.parametrize("answer", ["2", "shop", "the shop, please"])
async def test_of_several_repositories_the_person_is_asked_which_and_the_work_goes_on_in_it(
    answer: str,
) -> None:
    talk = among(Talk(), "bank", "shop", "scratch")
    [(name, asked)] = calls(await talk.say("Build a guest book."))
    assert (name, asked["options"]) == ("escalate_to_human", ["bank", "shop"])
    result = {"type": "tool_result", "tool_use_id": ids(talk.messages[-1])[0], "content": "{}"}
    said = {"type": "text", "text": f"[from Ann]: {answer}"}
    talk.messages.append({"role": "user", "content": [result, said]})
    question = "Build a guest book in the repository shop"
    assert calls(await talk.ask())[0] == ("consult_planner", {"question": f"{build.WRITE} {question}"})
    assert {task["repo"] for task in build.plan(question)} == {"shop"}


async def test_another_word_than_a_repository_leaves_the_question_alone() -> None:
    talk = among(Talk(), "bank", "shop")
    await talk.say("Build a guest book.")
    result = {"type": "tool_result", "tool_use_id": ids(talk.messages[-1])[0], "content": "{}"}
    talk.messages.append(
        {"role": "user", "content": [result, {"type": "text", "text": "[from Ann]: status"}]}
    )
    assert calls(await talk.ask())[0][0] == "check_agent_status"


async def test_the_only_repository_or_one_that_is_named_is_not_asked_for() -> None:
    for names, said in (
        (("shop", "scratch"), "Build a fence"),
        (("bank", "shop"), "Build a fence in shop"),
        (("bank", "shop"), "Build a fence in the repository shop"),
    ):
        [(tool, arguments), _] = calls(await among(Talk(), *names).say(said))
        assert tool == "consult_planner"
        assert build.where(arguments["question"]) == ({"repo": "shop"} if "bank" in names else {})


async def test_words_about_nothing_else_answer_the_question_of_a_task() -> None:
    talk = Talk(tools=(*CHATTER, "answer_task"))
    waiting = question.note([question.Waiting("calm-otter", "t.q1", ["red"], "s")], "s")
    for said, tool in (("rather teal", "answer_task"), ("Status", "check_agent_status")):
        note = {"type": "text", "text": prompt.situation(["ACTIVE PROJECT: `default`.", *waiting])}
        words = {"type": "text", "text": f"[from Ann]: {said}"}
        talk.messages = [{"role": "user", "content": [words, note]}]
        [(name, arguments), *_] = calls(await talk.ask())
        assert name == tool
        assert name != "answer_task" or arguments == {"task_id": "calm-otter", "answer": "rather teal"}


async def test_where_several_repositories_fit_the_person_is_shown_how_to_name_one() -> None:
    talk = Talk()
    await talk.say("Build a fence.")
    refused = {"error": "it is not clear which repository is meant", "why": "several fit backend: bank, shop"}
    await talk.reply({"error": "the plan was refused"}, FOUND)
    said = text(await talk.reply(refused))
    assert "“Build a fence in the repository bank”" in said


async def test_it_says_that_it_cannot_see_a_picture_and_answers_the_words() -> None:
    talk = Talk()
    talk.messages.append(
        {"role": "user", "content": [{"type": "text", "text": "[from Ann]: Hello"}, picture().block()]}
    )
    seen = await talk.ask()
    assert seen.notes == (
        "the demo model cannot see pictures: it was told that one came along, not what is in it",
    )
    assert (await talk.say("and now?")).notes == ()


async def test_an_agent_with_the_tools_of_a_coder_that_is_spoken_to_answers_and_runs_nothing() -> None:
    poet = Talk("poet", ("create_file", "bash"))
    answer = await poet.say("A rose")
    assert calls(answer) == []
    assert "poet here" in text(answer) and "A rose" in text(answer)
    assert calls(await poet.say("# Write it down\n\nA poem of roses."))[0][0] == "create_file"
