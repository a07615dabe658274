"""A bridge's runner on a bus in this process: what a command's end is to the asker, and what a successor does."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from shared import folders
from shared.guard.processes import starts
from shared.profiles.bridged import Bridged
from shared.settings import Settings
from shared.store.base import Store
from shared.store.sqlite import SqliteStore
from shared.turns.queue import Claim, Mail
from shared.turns.records import BegunRecord
from shared.turns.turn import Turn
from shared.worker.bridge.runner import BridgeRunner
from shared.worker.connection import Connection
from shared.worker.pool import Pool
from shared.worker.resources import CoreResources
from tests.support.valkey import eventually
from tests.worker.ground import connected, heard

TASK = {"command_file": "# Do it", "task_id": "calm-otter", "title": "Dig"}


class Ground:
    """A bus, and bridges of one name on it; they have no Store, and no setting but the folder."""

    def __init__(self, folder: Path) -> None:
        self.connection: Connection = connected()
        store: Store = SqliteStore(folder / "none.db")
        settings = Settings.model_validate({"PROMPTDOCK_HOME": folder})
        self.resources = CoreResources(settings, self.connection, store, "c")

    async def asked(self, kind: str = "question", **payload: Any) -> None:
        request = {"id": "q1", "from": "asker", "to": "echo", "type": kind, "payload": payload}
        channel = self.connection.names.agent("echo")
        await self.connection.queue("echo").post(Mail("q1", "q1", channel, json.dumps(request).encode()))

    async def turn(self) -> Turn:
        claim = await self.connection.queue("echo").claim("w1")
        assert isinstance(claim, Claim)
        return Turn(self.connection.queue("echo"), claim)

    async def answer(self, command: str, seconds: float = 30.0, turn: Turn | None = None) -> dict[str, Any]:
        """What the asker hears."""
        turn = turn or await self.turn()
        await BridgeRunner(self.resources, Bridged("echo", command, seconds), turn).run()
        assert turn.ended
        return await self.told()

    async def told(self) -> dict[str, Any]:
        """The one answer that went out."""
        [message] = [one for one in await heard(self.connection, "echo") if one["from"] == "echo"]
        return dict(message["payload"]) | {"type": message["type"]}


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    monkeypatch.setenv(folders.FOLDER, str(tmp_path))
    monkeypatch.setenv("REDIS_URL", "redis://:secret@localhost")
    return Ground(tmp_path)


async def test_a_command_answers_in_the_person_s_folder_without_the_cluster_s_secrets(
    ground: Ground, tmp_path: Path
) -> None:
    await ground.asked(question="Where?")
    found = await ground.answer('printf "%s %s %s [$REDIS_URL]" "$(cat)" "$PROMPTDOCK_SENDER" "$(pwd)"')
    assert found["type"] == "response" and found["answer"] == f"Where? asker {tmp_path} []"


async def test_what_a_command_says_of_a_task_is_verified_by_nobody(ground: Ground) -> None:
    await ground.asked("task", **TASK)
    found = await ground.answer("cat")
    assert (found["status"], found["verified"], found["summary"]) == ("completed", "unverified", "# Do it")


async def test_a_command_that_takes_too_long_ends_its_task_as_late(ground: Ground) -> None:
    await ground.asked("task", **TASK)
    found = await ground.answer("sleep 60", seconds=0.1)
    assert (found["type"], found["status"]) == ("error", "timeout")
    assert found["error"] == "the command was ended after 0.1 s"


async def test_a_question_that_a_bridge_died_with_is_asked_again_and_a_task_is_not(ground: Ground) -> None:
    await ground.asked("task", **TASK)
    turn = await ground.turn()
    await turn.step(BegunRecord(at=1))
    found = await ground.answer("cat", turn=turn)
    assert "what it did is not known" in found["error"] and found["status"] == "failed"


async def test_whoever_cancels_is_told_and_nothing_of_the_command_runs_on(
    ground: Ground, tmp_path: Path
) -> None:
    await ground.asked(question="slow")
    bridged = Bridged("echo", f"touch {tmp_path}/begun; sleep 60; touch {tmp_path}/ended")
    pool = Pool(
        ground.connection.queue("echo"),
        lambda turn: BridgeRunner(ground.resources, bridged, turn),
        lambda: None,
        1,
    )
    claim = await ground.connection.queue("echo").claim("w1")
    assert isinstance(claim, Claim)
    pool.take(claim)

    async def begun() -> bool:
        return (tmp_path / "begun").exists()

    await eventually(begun, 20)
    [running] = pool
    pool.stop("q1")
    await asyncio.wait_for(asyncio.gather(running.task, return_exceptions=True), 20)
    found = await ground.told()
    assert (found["error"], found["status"]) == ("cancelled", "stopped")
    assert len(pool) == 0 and not (tmp_path / "ended").exists()


async def test_what_is_no_question_is_refused_in_words(ground: Ground) -> None:
    await ground.asked("command", command="rest")
    assert "takes questions and tasks" in (await ground.answer("cat"))["error"]


def test_a_person_s_program_is_not_shown_the_way_to_our_code() -> None:
    ours = starts.surroundings({"PYTHONPATH": "/theirs", "PATH": "/bin"})
    assert starts.undone(ours) == {"PYTHONPATH": "/theirs", "PATH": "/bin"}
    assert "PYTHONPATH" not in starts.undone(starts.surroundings({"PATH": "/bin"}))
