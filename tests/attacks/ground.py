"""A workspace with a canary beside it, and every tool behind the real gate."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from shared.bus.base import Bus
from shared.bus.keys import Names
from shared.bus.signing import Signer
from shared.errors import StoreUnavailable
from shared.guard.permissions.policy import Policy
from shared.guard.sandbox.sandbox import Sandbox
from shared.loop import Call
from shared.settings import Settings
from shared.store.base import Store
from shared.tools import catalog
from shared.tools.context import Context, Root
from shared.tools.execute import ToolExecutor
from shared.turns.queue import Claim, Queue
from shared.turns.records import CheckRecord
from shared.turns.turn import Turn
from shared.worker.connection import Connection
from shared.worker.permissions.approver import Approver
from shared.worker.permissions.authority import Authority
from shared.worker.permissions.gate import PermissionGate
from shared.worker.permissions.service import ApprovalService

HOSTILE: dict[str, Any] = json.loads(Path(__file__).with_name("hostile.json").read_text("utf-8"))
CANARY = "CANARY-51c0ffee"
REGISTRY = catalog.registry()


def prepare(root: Path) -> None:
    """What the commands stumble over: a repository, a script, a file to read."""
    root.mkdir(parents=True)
    (root / "src").mkdir()
    (root / "src" / "a.py").write_text("a = 1\n")
    (root / "f").write_text("one\ntwo x\n")
    (root / "big").write_text("".join(f"{number % 97}\n" for number in range(300)))
    (root / "m").write_text("all:\n\ttouch CANARY\n")
    script = root / "p.sh"
    script.write_text("#!/bin/sh\ntouch CANARY\ncat\n")
    script.chmod(0o755)
    author = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    for arguments in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "first")):
        subprocess.run(["git", *author, *arguments], cwd=root, check=True, capture_output=True)
    (root / "f").write_text("one\nchanged x\n")


def whole(file: Path) -> bool:
    """Whether the canary is untouched."""
    return file.read_text() == CANARY


def git(root: Path, *arguments: str) -> str:
    """git as anybody runs it, whether it likes it or not."""
    return subprocess.run(
        ["git", *arguments], cwd=root, capture_output=True, text=True, timeout=20
    ).stdout.strip()


class NoStore:
    """A Store that is down: nobody has given any standing permission."""

    async def select(self, *_arguments: Any, **_more: Any) -> list[Any]:
        raise StoreUnavailable("the store is down", "for this test")


@dataclass
class Ground:
    """One agent's turn in a workspace, with nobody who could be asked for permission."""

    root: Path
    policy: Policy
    sandbox: Sandbox

    def __post_init__(self) -> None:
        queue = Queue(cast(Bus, None), Names("attacks"), "backend")
        self.turn = Turn(queue, Claim("s", 1, 1, 0, [], [], [], None, 0))
        store, here = cast(Store, NoStore()), Approver()
        connection = Connection(queue.bus, queue.names, Signer("x" * 64), queue.lease_ms)
        approvals = ApprovalService(connection, store, Settings().approver_roles, demo=False)
        authority = Authority(store, Settings().home, "", self.sandbox.offline)
        self.gate = PermissionGate(
            *(
                store,
                self.sandbox,
                approvals,
                authority,
                "backend",
                self.policy,
                1.0,
                self.turn,
                here,
                lambda _kind, _payload: None,
            ),
            roots=(self.root.name,),
        )
        root = Root(self.root.name, self.root, writable=True)
        self.context = Context(*("backend", "s", "t", store), roots={root.name: root}, sandbox=self.sandbox)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """One call, as a model makes it; what the model would read."""
        call = Call("c", f"t.{len(self.turn.records)}.1", tool, arguments)
        verdict = await self.gate.permission(call, REGISTRY.bind(tool, arguments))
        if not verdict.allowed:
            return {"error": "not allowed", "why": verdict.reason}
        return await ToolExecutor(REGISTRY).execute(tool, arguments, self.context)

    @property
    def decisions(self) -> list[str]:
        """What the gate noted."""
        return [check.decision for check in self.turn.records.of(CheckRecord)]
