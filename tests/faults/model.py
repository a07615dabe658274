"""The scripted model of a fault run, and what was bought from it.

It does what the person's last words say (the kind, the user and a number: `ask u1 7`):

    say     answers at once                        ask     consults Planner first
    look    looks at presence first
    task    assigns a task to Backend, which appends a line, writes a file, changes it, and is done
    nap     as task, but the line is appended after a long sleep

Each answer ends with `#<number of the request>`, so that the one that was used can be told from one that
was bought and lost.
"""

from __future__ import annotations

import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import pairwise

from tests.support.messages_script import Body, Step, last_words, words

_SAID = re.compile(r"^(?:\[from [^\]]*\]: )?(.*)$")
_TASK = re.compile(r"^\[task [^\]]*\]\s*(.*)", re.DOTALL)
APPEND = "sleep 0.2; echo {line} >> effects.txt"
NAP = "sleep 297.47"  # a command that no other process on this machine runs


class Thinker:
    """A script for `MessagesApi`. Thread-safe: the server has a thread of its own."""

    def __init__(self, delay: float = 0.05) -> None:
        self.delay = delay
        self.number = 0
        self.rounds: dict[tuple[str, str], list[int]] = defaultdict(
            list
        )  # (agent, words) -> rounds as bought
        self.trouble: Callable[[str, int], Step | None] = lambda _said, _tries: None
        self.tries: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, body: Body) -> Step:
        heard, done = last_words(body["messages"])
        agent = _agent(body)
        said = _said(heard)
        with self._lock:
            self.tries[said] += 1
            if failing := self.trouble(said, self.tries[said]):
                return failing
            self.number += 1
            self.rounds[agent, said].append(done)
            number = self.number
        step = _steps(agent, said)[min(done, len(_steps(agent, said)) - 1)]
        return Step(text=f"{step.text} #{number}" if step.text else "", tools=step.tools, delay=self.delay)

    def again(self) -> int:
        """Answers that were bought more than once: what was in flight when somebody died."""
        return sum(len(bought) - len(set(bought)) for bought in self._told_apart())

    def backward(self) -> int:
        """Answers that were bought again although the turn had gone on behind them: a stored one was lost."""
        return sum(later < earlier for bought in self._told_apart() for earlier, later in pairwise(bought))

    def _told_apart(self) -> list[list[int]]:
        """The rounds of each message whose words nobody else used."""
        with self._lock:
            return [list(bought) for (_, said), bought in self.rounds.items() if " " in said]


def _agent(body: Body) -> str:
    found = re.search(r"You are (\w+)", words(body.get("system", "")))
    return found[1].lower() if found else ""


def _said(heard: str) -> str:
    if task := _TASK.match(heard):
        return task[1].strip()
    found = _SAID.match(heard.strip().splitlines()[-1] if heard.strip() else "")
    return found[1] if found else ""


def _steps(agent: str, said: str) -> list[Step]:
    kind = said.split(" ", 1)[0]
    if agent == "backend":
        name = said.replace(" ", "-")
        append = APPEND.format(line=name)
        if kind == "nap":
            append = f"touch begun.txt; {NAP}; {append}"
        return [
            Step(tools=({"name": "bash", "input": {"command": append}},)),
            Step(tools=({"name": "create_file", "input": {"path": f"{name}.txt", "content": "one\ntwo\n"}},)),
            Step(
                tools=(
                    {
                        "name": "str_replace",
                        "input": {"path": f"{name}.txt", "old_str": "two", "new_str": "two and two"},
                    },
                )
            ),
            Step(text=f"did {said}"),
        ]
    if agent == "chatter" and kind == "ask":
        asking = {"name": "consult_planner", "input": {"question": f"plan {said}"}}
        return [Step(tools=(asking,)), Step(text=f"re: {said}")]
    if agent == "chatter" and kind == "look":
        looking = {"name": "check_agent_status", "input": {"agent": "planner"}}
        return [Step(tools=(looking,)), Step(text=f"re: {said}")]
    if agent == "chatter" and kind in ("task", "nap"):
        order = {"name": "assign_task", "input": {"agent": "backend", "command_file": said}}
        return [Step(tools=(order,)), Step(text=f"re: {said}")]
    return [Step(text=f"re: {said}")]
