"""A cluster starts from what a release left behind, and everything in it goes on (`tests.support.homes`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shared.bus.keys import Names
from tests.support import homes
from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Rules
from tests.support.processes import Site, until
from tests.support.wire import Wire
from tests.tools.ground import git

KEPT = sorted(path for path in homes.KEPT.iterdir() if path.is_dir())


@pytest.fixture(scope="module", params=KEPT, ids=lambda path: path.name)
def kept(request: pytest.FixtureRequest) -> Path:
    """One home that is kept."""
    folder: Path = request.param
    return folder


@pytest.fixture(scope="module")
def api(kept: Path) -> Iterator[MessagesApi]:
    """The model of this home alone, which answers what it answered then."""
    with MessagesApi(Rules(homes.RULES)) as server:
        yield server


@pytest.fixture(scope="module")
def place(
    kept: Path, tmp_path_factory: pytest.TempPathFactory, valkey: str, api: MessagesApi
) -> Iterator[Site]:
    """Its site, in which nothing has been started."""
    names = Names(homes.about(kept)["namespace"])
    with homes.at(tmp_path_factory.mktemp("kept"), valkey, api, names) as made:
        homes.bring_back(kept, made)
        yield made


@pytest.fixture(scope="module")
def wire(place: Site) -> Iterator[Wire]:
    """What is said there from the first moment on, with Chatter and Backend at work."""
    with Wire(place.url, place.names) as listening:
        place.up("chatter")
        place.up("backend", PERMISSION_PROFILE="guarded")  # in whatever sandbox there is
        yield listening


def test_times_of_each_form_move_by_what_passed_since_and_other_numbers_stay() -> None:
    left = datetime.now(UTC) - timedelta(days=60)
    ms, iso = round(left.timestamp() * 1000), left.isoformat(timespec="microseconds")
    text = f"{ms}-0 {ms}.0 {ms // 1000}.5 {iso} {iso[:23]}Z {iso[:19]} 1234567890123 12345"
    entry, score, seconds, *times, other, small = homes.moved(text, left).split(" ")
    found = [float(entry[:-2]) / 1000, float(score) / 1000, float(seconds)]
    found += [
        datetime.fromisoformat(time.removesuffix("Z")).replace(tzinfo=UTC).timestamp() for time in times
    ]
    assert all(abs(moment - datetime.now(UTC).timestamp()) < 60 for moment in found)
    assert [len(time) for time in times] == [32, 24, 19] and (other, small) == ("1234567890123", "12345")


def test_a_turn_that_was_cut_off_is_finished_and_nothing_is_bought_again(
    wire: Wire, api: MessagesApi
) -> None:
    said = wire.wait("chatter-output", lambda said: said["user_id"] == "cat")
    assert (said["status"], said["content"]) == ("complete", "Then that.")
    asked = [body for body in api.requests if "look twice" in json.dumps(body["messages"])]
    assert len(asked) == 1 and "First this. " in json.dumps(asked[0]["messages"])


def test_a_message_that_waited_is_answered(wire: Wire) -> None:
    said = wire.closing("m-dan")
    assert said["content"].endswith("Is anybody there?")


def test_a_conversation_goes_on_with_what_was_said(wire: Wire, api: MessagesApi) -> None:
    assert wire.ask("What did I say?", user="ann")["status"] == "complete"
    assert "The sea is green." in json.dumps(api.requests[-1]["messages"][0])


def test_a_permission_that_was_asked_for_can_still_be_given(wire: Wire, place: Site) -> None:
    [card] = place.query("select approval_id from approvals where state = 'pending' and user_id = 'bob'")
    assert place.query("select id from tasks where title = 'Old work'")
    sent = wire.send(user="bob", type="approval", approval_id=card["approval_id"], decision="allow_once")
    assert wire.closing(sent)["content"].startswith("Deleted: ")
    assert not place.query("select id from tasks where title = 'Old work'")


@pytest.mark.timeout(180)
def test_a_task_that_waited_for_an_agent_is_done(wire: Wire, place: Site) -> None:
    def done() -> bool:
        [row] = place.query("select status from tasks where title = 'Write notes'")
        return bool(row["status"] == "COMPLETED")

    until(done, 120, "the end of the task", lambda: [worker.tail()[-1500:] for worker in place.workers])
    [row] = place.query("select branch from tasks where title = 'Write notes'")
    assert git(place.folder / "shop", "show", f"{row['branch']}:NOTES.md") == "Notes of the shop"


def test_projects_notes_hooks_and_repositories_are_there(wire: Wire) -> None:
    def listed(tool: str, name: str, **arguments: str) -> str:
        return json.dumps(wire.command(tool, user="ann", **arguments)["result"][name])

    assert '"shop"' in listed("list_projects", "projects")
    assert "Prices" in listed("list_notes", "notes", project_id="shop")
    assert "New year" in listed("list_hooks", "hooks", project_id="shop")
    assert '"shop"' in listed("list_repos", "repos", project_id="shop")
    found = wire.command("memory_search", user="ann", project_id="shop", query="price")["result"]
    assert [hit["title"] for hit in found["results"]] == ["Prices"]
