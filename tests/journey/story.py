"""The journey as its person walks it, and everything that must hold at its end."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.journey.model import API, ASKED, BEGUN, BOOK, CHECK, MERGE, OURS, PAGE, SENTENCE, TITLES, Thinker
from tests.support.messages_api import MessagesApi
from tests.support.processes import Site, site, until
from tests.support.wire import Wire
from tests.tools.ground import git, repository

FILES = {"promptdock.toml": '[checks]\ncommands = ["sh check.sh"]\n', "check.sh": CHECK}
LONG = 90.0  # seconds; a bound for machines that are busy, nothing is expected to take it
PERSON = "ann"
CALLS = 12  # of tools: one to consult, one to plan, six to work, one to look up, three to merge
# Another executor is journalled by its runs and its commands: four runs, and not what it thinks and writes.
THEIR_ANSWERS, THEIR_RESULTS = 7 + 4, 6 + 2
_UNDISTURBED = {
    API: ["created", "assigned", "started", "completed", "passed"],
    PAGE: ["created", "assigned", "started", "completed", "passed"],
    BOOK: ["created", "dependencies_met", "assigned", "started", "completed", "passed"],
}


@dataclass
class Journey:
    """One walk. The steps are to be taken in their order."""

    site: Site
    wire: Wire
    api: MessagesApi
    model: Thinker
    repo: Path
    ours: bool = True  # whether the workers' answers and calls are journalled by our own loop

    # -- the person's steps ----------------------------------------------------------------------------------

    def asks(self) -> None:
        """One sentence; the plan comes back, and its first two tasks begin."""
        said = self.wire.ask(SENTENCE, PERSON, LONG)
        assert (said["status"], said["content"]) == ("complete", "It is planned.")
        first = {API: "IN_PROGRESS", PAGE: "IN_PROGRESS", BOOK: "DEFINED"}
        until(lambda: self.states() == first, LONG, "both at once", self.states)
        until(self._both, LONG, "both being thought about")

    def _both(self) -> bool:
        return {"backend", "frontend"} <= {agent for agent, _, _ in self.model.bought}

    def lets_them_work(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Until the third task asks for permission (`meanwhile` it waits), and has it."""
        self.api.released.add(BEGUN)
        card = self._card(f"tool:create_file:{ASKED}")
        task = self.row(BOOK)
        assert task["status"] == "IN_PROGRESS" and not self._committed(task), (
            "it ran before it had permission"
        )
        meanwhile()
        self._answers(card)
        until(lambda: set(self.states().values()) == {"COMPLETED"}, LONG, "the end of the plan", self.states)

    def merges(self) -> None:
        """In a word; each merge is asked for and allowed."""
        head = git(self.repo, "rev-parse", "main")
        sent = self.wire.send(MERGE, PERSON)
        for title in TITLES:
            card = self._card(f"tool:merge_task:{self.row(title)['slug']}")
            if title == TITLES[0]:
                assert git(self.repo, "rev-parse", "main") == head, "it was merged before it had permission"
            self._answers(card)
        said = self.wire.closing(sent, LONG)
        assert (said["status"], said["content"]) == ("complete", "It is merged.")

    def _card(self, action: str) -> dict[str, Any]:
        sql = "select * from approvals where action = ? and state = 'pending'"
        (card,) = until(lambda: self.site.query(sql, action), LONG, f"the question about {action}", self.told)
        assert card["user_id"] == PERSON
        return card

    def _answers(self, card: dict[str, Any]) -> None:
        self.wire.send(user=PERSON, type="approval", approval_id=card["approval_id"], decision="allow_once")

    def _committed(self, task: dict[str, Any]) -> list[str]:
        return git(self.repo, "log", "--format=%H", f"{task['base_commit']}..{task['branch']}").split()

    # -- what the Store says ---------------------------------------------------------------------------------

    def row(self, title: str) -> dict[str, Any]:
        (row,) = self.site.query("select * from tasks where title = ?", title)
        return row

    def states(self) -> dict[str, str]:
        return {str(row["title"]): str(row["status"]) for row in self.site.query("select * from tasks")}

    def events(self, title: str) -> list[str]:
        sql = "select event from task_events where task_id = ? order by created_at, rowid"
        return [str(row["event"]) for row in self.site.query(sql, self.row(title)["id"])]

    def told(self) -> Any:
        """For the message of a failure."""
        waiting = self.site.query("select action, state from approvals")
        logs = "\n".join(worker.tail()[-1500:] for worker in self.site.workers)
        return self.states(), waiting, self.wire.heard[-10:], logs

    # -- what must hold --------------------------------------------------------------------------------------

    def one_branch_holds_every_commit_once(self) -> None:
        """The default branch, all checks green, and nobody's checkout touched by anything but the merges."""
        results = [self.result(title) for title in TITLES]
        made = [sha for result in results for sha in json.loads(result["commits"])]
        ours = git(self.repo, "log", "--no-merges", "--format=%H", "main").split()[:-1]
        assert Counter(made) == Counter(ours), "a commit is missing, or there twice"
        subjects = git(self.repo, "log", "--no-merges", "--format=%s", "main").splitlines()
        repaired = f"{PAGE}: what its checks found"
        assert Counter(subjects) == Counter([*TITLES, repaired, "the first commit"])
        merges = git(self.repo, "log", "--first-parent", "--merges", "--format=%s", "main").splitlines()
        wanted = [f"Merge {self.row(title)['slug']}: {title}" for title in reversed(TITLES)]
        assert merges == wanted
        assert git(self.repo, "status", "--porcelain") == ""
        assert git(self.repo, "worktree", "list").count("\n") == 0
        files = {path.name: path.read_text() for path in (self.repo / "src").iterdir()}
        book = "the api\nthe page\n"
        assert files == {
            "api.txt": "the api\n", "page.txt": "the page\n", "book.txt": book, "count.txt": "once\n",
        }  # fmt: skip
        check = subprocess.run(["sh", "check.sh"], cwd=self.repo, timeout=60, check=False)
        assert check.returncode == 0

    def result(self, title: str) -> dict[str, Any]:
        (result,) = self.site.query("select * from task_results where task_id = ?", self.row(title)["id"])
        return result

    def the_receipts_say_what_was_checked(self) -> None:
        for title in TITLES:
            receipt = json.loads(self.result(title)["receipt"])
            checks = {run["command"]: run["exit_code"] for run in receipt["commands"] if run["check"]}
            assert (receipt["verified"], checks) == ("verified", {"sh check.sh": 0})
            assert receipt["clashes"] == []
        sql = "select detail from turn_steps where turn_id like ? and kind = 'checks' order by number"
        ran = self.site.query(sql, f"task:{self.row(PAGE)['slug']}:%")
        codes = [[run["exit_code"] for run in json.loads(row["detail"])["ran"]] for row in ran]
        assert codes == [[1], [0]], "the first check failed, the second passed"
        started = [str(self.row(title)["started_at"]) for title in (API, PAGE)]
        ended = [str(self.row(title)["ended_at"]) for title in (API, PAGE)]
        assert max(started) < min(ended), "they did not run side by side"
        assert str(self.row(BOOK)["started_at"]) > max(ended)

    def the_trail_is_whole(self) -> None:
        """Each transition is a row, and so is each call of a tool, each answer, each question, each message."""
        until(lambda: all(self.events(title)[-1] == "merged" for title in TITLES), LONG, "the last rows")
        for title in TITLES:
            assert self.events(title) == [*_UNDISTURBED[title], "merged"]
        until(lambda: not self._missing(), LONG, "the last rows", self._missing)
        sql = "select action, decision, person from audit_log where decision = 'ask_approved'"
        allowed = Counter((row["action"], row["person"]) for row in self.site.query(sql))
        slugs = [str(self.row(title)["slug"]) for title in TITLES]
        asked = [f"tool:create_file:{ASKED}", *(f"tool:merge_task:{slug}" for slug in slugs)]
        assert allowed == Counter((action, PERSON) for action in asked)
        states = self.site.query("select state, decided_by from approvals")
        assert [(row["state"], row["decided_by"]) for row in states] == [("allow_once", PERSON)] * 4, states

    def _missing(self) -> list[str]:
        """What the archive has not written yet."""
        steps = self.site.query("select agent, kind, turn_id, number from turn_steps")
        kinds = Counter(row["kind"] for row in steps)
        answers = len(self.model.bought) if self.ours else THEIR_ANSWERS
        audit = self.site.query("select id from audit_log where action not like 'tool:add_repo%'")
        wanted = {
            "answers": (kinds["model"], answers),
            "answers paid": (len(self.site.query("select id from token_usage")), answers),
            "results": (kinds["result"], CALLS if self.ours else THEIR_RESULTS),
            "calls allowed": (len(audit), CALLS),
            "steps once": (len({(row["agent"], row["turn_id"], row["number"]) for row in steps}), len(steps)),
        }
        missing = [f"{name}: {found} of {want}" for name, (found, want) in wanted.items() if found != want]
        said = Counter(
            (row["from_agent"], row["type"])
            for row in self.site.query("select from_agent, type from messages")
        )
        people = {("chatter", "question"): 1, ("planner", "response"): 1, ("chatter", "task"): 3}
        people |= {
            ("user", "message"): 2,
            ("user", "approval"): 4,
            ("backend", "response"): 2,
            ("frontend", "response"): 1,
        }
        return missing + [f"{key}: {said[key]} of {n}" for key, n in people.items() if said[key] != n]


@contextlib.contextmanager
def walk(
    folder: Path, url: str, *agents: str, tools: dict[str, str] = OURS, **settings: str
) -> Iterator[Journey]:
    """A cluster that was never used, and a repository that it knows."""
    model = Thinker(tools)
    repo = repository(folder / "guestbook", FILES).path
    with MessagesApi(model) as api:
        settings |= {"ANTHROPIC_API_KEY": "sk-ant-test-key-0000", "ANTHROPIC_BASE_URL": api.url}
        with site(folder / "site", url, **settings) as place, Wire(place.url, place.names) as wire:
            place.up(*agents)
            added = wire.command(
                "add_repo", user=PERSON, source="link", path=str(repo), name="guestbook", kind="both"
            )
            assert added["status"] == "complete", added
            yield Journey(place, wire, api, model, repo, tools is OURS)
