"""The scripted model of the journey: what each agent answers, and what was bought of it.

Chatter has the sentence planned; Planner writes three tasks, of which two may run side by side and the third
needs both. Frontend leaves something undone, which the project's check finds. Backend asks for permission. At the
person's word Chatter looks the tasks up and merges them.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from typing import Any

from tests.support.messages_script import Body, Step, results, words

SENTENCE = "I want a guest book."
MERGE = "Merge it all, please."
API, PAGE, BOOK = "Keep the entries", "Show the entries", "Bind the book"
TITLES = (API, PAGE, BOOK)
# It fails where something is left undone, and where the book is bound without what belongs into it.
CHECK = """\
! grep -rn TODO src || exit 1
test ! -e src/book.txt || cat src/api.txt src/page.txt | cmp - src/book.txt
"""
BEGUN = "begun"  # no worker ends its first answer before the test says that both tasks are under way
_AGENT = re.compile(r"You are (Chatter|Planner|Frontend|Backend)\b")
ASKED = ".env.example"  # a file that other programs obey: permission is asked for it


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "input": arguments}


def task(title: str, agent: str, *needs: int) -> dict[str, Any]:
    return {
        "title": title,
        "description": f"{title}, as the plan says.",
        "agent": agent,
        "acceptance": ["sh check.sh"],
        "depends_on": list(needs),
    }


PLAN = [task(API, "backend"), task(PAGE, "frontend"), task(BOOK, "backend", 0, 1)]
OURS = {"write": "create_file", "where": "path", "shell": "bash"}
CLAUDE = {"write": "Write", "where": "file_path", "shell": "Bash"}


FAILED = "not all passed"  # how an agent is told what its check found


def steps(tools: dict[str, str]) -> dict[tuple[str, str], list[Step]]:
    """What all answer, by agent and by what they heard last; `tools` are those that an executor has."""

    def writes(path: str, text: str) -> dict[str, Any]:
        return call(tools["write"], **{tools["where"]: path, "content": text})

    def runs(command: str) -> dict[str, Any]:
        return call(tools["shell"], command=command)

    consult = call("consult_planner", question=f"Write the tasks: {SENTENCE}")
    submit = call("submit_plan", summary="A book of two parts", tasks=PLAN, write=True)
    return {
        ("chatter", SENTENCE): [Step(tools=(consult,)), Step(text="It is planned.")],
        ("planner", SENTENCE): [Step(tools=(submit,)), Step(text="Both parts first, then the book.")],
        ("backend", f"# {API}"): [
            Step(tools=(writes("src/api.txt", "the api\n"),), hold=BEGUN),
            Step(tools=(runs("echo once >> src/count.txt"),)),
            Step(text="The entries are kept."),
        ],
        ("frontend", f"# {PAGE}"): [
            Step(tools=(writes("src/page.txt", "TODO\n"),), hold=BEGUN),
            Step(text="The entries are shown."),
        ],
        ("frontend", FAILED): [
            Step(tools=(writes("src/page.txt", "the page\n"),)),
            Step(text="Nothing is left undone."),
        ],
        ("backend", f"# {BOOK}"): [
            Step(tools=(runs("cat src/api.txt src/page.txt > src/book.txt"),)),
            Step(tools=(writes(ASKED, "TITLE=Guest book\n"),)),
            Step(text="The book is bound."),
        ],
    }


class Thinker:
    """The script for `MessagesApi`; the server has a thread of its own."""

    def __init__(self, tools: dict[str, str]) -> None:
        self._steps = steps(tools)
        self._known = {heard for _, heard in self._steps} | {MERGE}
        self._lock = threading.Lock()
        self.bought: Counter[tuple[str, str, int]] = Counter()  # (agent, what it heard, round) -> answers
        self.backward: list[tuple[str, str, int]] = []  # answers bought again though the turn had gone on

    def __call__(self, body: Body) -> Step:
        found = _AGENT.search(words(body.get("system", "")))
        if not found:  # an executor's own small questions, such as for a title
            return Step(text="ok")
        agent = found[1].lower()
        heard, rounds = self._heard(body["messages"])
        key = (agent, heard, rounds)
        with self._lock:
            self.bought[key] += 1
            if (agent, heard, rounds + 1) in self.bought:
                self.backward.append(key)
        if heard == MERGE:
            return _merge(body, rounds)
        known = self._steps[agent, heard]
        return known[min(rounds, len(known) - 1)]

    def _heard(self, messages: list[Body]) -> tuple[str, int]:
        """What of the story was said last, and how many answers have followed since."""
        rounds = 0
        for message in reversed(messages):
            if message["role"] == "assistant":
                rounds += 1
                continue
            text = words(message["content"])
            if found := [known for known in self._known if known in text]:
                return found[0], rounds
        return "", rounds

    @property
    def again(self) -> int:
        """Answers that were bought more than once."""
        return sum(count - 1 for count in self.bought.values())


def _merge(body: Body, rounds: int) -> Step:
    """Look up what the tasks are called, then merge them all."""
    if rounds == 0:
        return Step(tools=(call("list_tasks", completed_only=True),))
    if rounds > 1:
        return Step(text="It is merged.")
    (listed,) = results(body["messages"][-1])
    known = {row["title"]: row["id"] for row in json.loads(words(listed["content"]))["tasks"]}
    return Step(tools=tuple(call("merge_task", task_id=known[title]) for title in TITLES))
