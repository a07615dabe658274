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

import os
import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from tests.support.messages_script import Body, Step, last_words, words

_SAID = re.compile(r"^(?:\[from [^\]]*\]: )?(.*)$")
_TASK = re.compile(r"^\[task [^\]]*\]\s*(.*)", re.DOTALL)
APPEND = "sleep 0.2; echo {line} >> effects.txt"
NAP = f"sleep 297.{os.getpid()}"  # a command that nothing else on this machine runs


@dataclass(frozen=True)
class Bought:
    """One answer that was sold: of which round, to whom (their key), and when they asked (monotonic)."""

    round: int
    buyer: str
    at: float

    def __str__(self) -> str:
        return f"round {self.round} by {self.buyer} at {self.at:.3f}"


class Thinker:
    """A script for `MessagesApi`. Thread-safe: the server has a thread of its own."""

    def __init__(self, delay: float = 0.05) -> None:
        self.delay = delay
        self.number = 0
        # (agent, words) -> what was bought for them, in order
        self.sold: dict[tuple[str, str], list[Bought]] = defaultdict(list)
        self.buyer: Callable[[], str] = str  # the key of the request that is answered
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
            self.sold[agent, said].append(Bought(done, self.buyer(), time.monotonic()))
            number = self.number
        step = _steps(agent, said)[min(done, len(_steps(agent, said)) - 1)]
        return Step(text=f"{step.text} #{number}" if step.text else "", tools=step.tools, delay=self.delay)

    def again(self) -> int:
        """Answers that were bought more than once: what was in flight when somebody died."""
        return sum(len(bought) - len({one.round for one in bought}) for bought in self._told_apart().values())

    def backward(self) -> list[str]:
        """Answers that were bought again although the turn had gone on behind them: a stored one was lost.

        In the order in which they were bought; told so that a reader sees who asked when.
        """
        found = [
            (later.at, f"{agent} bought again for {said!r}: {'; '.join(map(str, bought))}")
            for (agent, said), bought in self._told_apart().items()
            for earlier, later in pairwise(bought)
            if later.round < earlier.round
        ]
        return [told for _, told in sorted(found)]

    def _told_apart(self) -> dict[tuple[str, str], list[Bought]]:
        """What was bought for each message whose words nobody else used."""
        with self._lock:
            return {of: list(bought) for of, bought in self.sold.items() if " " in of[1]}


def _agent(body: Body) -> str:
    found = re.search(r"^You are (\w+),", words(body.get("system", "")), re.MULTILINE)
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
