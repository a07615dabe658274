"""Who has a worktree: one owner at a time, whose children can be found and ended.

Two files stand beside the worktree, where no command that runs in it can reach them by name:

    <task>.json    who owns it (process, epoch) and which process groups it started; locked while it is
                   read and written, and from before a child starts until its group is written down
    <task>.lease   inherited by every child, which holds a shared lock on it as long as it lives

So a successor first makes itself the owner, which fences the old one, and then ends what is recorded, and
whoever else still holds the lease, before it goes on. A worker that was only frozen wakes up to `Fenced`.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import secrets
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from shared.errors import Busy, Fenced
from shared.guard.files import lock
from shared.guard.processes.pid import birth
from shared.guard.processes.process import end_group

_WAIT = 10.0  # seconds for another's short critical section
_END = 5.0  # seconds until killed children must be gone
_PAUSE = 0.02
LockRecord = dict[str, Any]


class _Starting:
    """A child that is about to start: it inherits `fd`, and its group is written down by `started`."""

    def __init__(self, fd: int, record: int) -> None:
        self.fd, self._record = fd, record

    def started(self, pid: int) -> None:
        record = _read(self._record)
        record["groups"] = [*filter(_ours, record["groups"]), {"group": pid, "birth": birth(pid)}]
        _write(self._record, record)


class WorktreeLock:
    """The lock of one worktree, to be handed to `process.run`; see the head of this file."""

    def __init__(self, folder: Path, name: str, epoch: int) -> None:
        self.epoch = epoch
        self._record, self._lease = folder / f"{name}.json", folder / f"{name}.lease"
        self._token = secrets.token_hex(8)

    def living(self) -> bool:
        """Whether somebody alive owns it now."""
        owner = self._look().get("owner")
        return owner is not None and _alive(owner)

    def known(self) -> bool:
        """Whether it was ever taken and not forgotten since."""
        return self._record.exists()

    def _look(self) -> LockRecord:
        try:
            fd = os.open(self._record, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return {}
        try:
            return _read(fd)
        finally:
            os.close(fd)

    async def take(self) -> LockRecord:
        """Become the owner, ending all children of whoever was it; what that one had noted is returned.

        Raises Fenced where a living owner has a later epoch, Busy where its children cannot be ended or it
        stands in the middle of starting one.
        """
        self._record.parent.mkdir(parents=True, exist_ok=True)
        fd = await lock.acquire(self._record, _WAIT)
        try:
            old = _read(fd)
            owner = old.get("owner")
            if owner and old.get("token") != self._token and old["epoch"] > self.epoch and _alive(owner):
                raise Fenced(
                    "this worktree belongs to a later turn", f"epoch {old['epoch']} against {self.epoch}"
                )
            mine = {"group": os.getpid(), "birth": birth(os.getpid())}
            record = {"owner": mine, "token": self._token, "epoch": self.epoch}
            # Fences the old owner; its groups stay written down until they are gone, should we die here.
            _write(fd, {**record, "groups": old.get("groups", []), "notes": old.get("notes", {})})
            await self._end(old.get("groups", []))
            _write(fd, {**record, "groups": [], "notes": old.get("notes", {})})
            return dict(old.get("notes", {}))
        finally:
            os.close(fd)

    @contextlib.asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Nobody takes over between entering and leaving; Fenced where somebody has. Keep it short."""
        file = await self._enter()
        try:
            yield
        finally:
            os.close(file)

    @contextlib.asynccontextmanager
    async def child(self) -> AsyncIterator[_Starting]:
        """A child may be started between entering and leaving; Fenced where somebody took over."""
        file = await self._enter()
        try:
            lease = os.open(self._lease, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lease, fcntl.LOCK_SH | fcntl.LOCK_NB)
                yield _Starting(lease, file)
            finally:
                os.close(lease)
        finally:
            os.close(file)

    async def note(self, **notes: Any) -> None:
        """Keep something for whoever holds it next."""
        file = await self._enter()
        try:
            record = _read(file)
            _write(file, {**record, "notes": {**record.get("notes", {}), **notes}})
        finally:
            os.close(file)

    async def release(self, forget: bool = False) -> None:
        """Give it back, ending children that still run; `forget` removes the files too. Never Fenced."""
        with contextlib.suppress(Fenced):
            file = await self._enter()
            try:
                record = _read(file)
                await self._end(record["groups"])
                if forget:
                    self._lease.unlink(missing_ok=True)
                    self._record.unlink(missing_ok=True)
                else:
                    _write(file, {"epoch": self.epoch, "groups": [], "notes": record.get("notes", {})})
            finally:
                os.close(file)

    async def _enter(self) -> int:
        """The record, locked and ours."""
        if not self._record.exists():
            raise _fenced()
        file = await lock.acquire(self._record, _WAIT)
        if _read(file).get("token") != self._token:
            os.close(file)
            raise _fenced()
        return file

    async def _end(self, groups: list[LockRecord]) -> None:
        """Kill these groups and whoever else holds the lease, until nobody of them lives."""
        end = time.monotonic() + _END
        ours = [group["group"] for group in groups if _ours(group)]
        lease = os.open(self._lease, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # A child that made a session of its own left the group, but not the lease; one that closed the
            # lease is still in the group.
            while (left := _members(ours)) or not _lock(lease):
                for group in ours if left else ():
                    end_group(group)  # all at once, so that none forks in between
                for pid in _holders(lease):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                if time.monotonic() >= end:
                    raise Busy(
                        "children of an earlier worker still run in this worktree", "", "end them by hand"
                    )
                await asyncio.sleep(_PAUSE)
        finally:
            os.close(lease)


def _fenced() -> Fenced:
    return Fenced("this worker lost its worktree", "a successor has taken it over")


def _alive(process: LockRecord) -> bool:
    return bool(process["birth"]) and birth(process["group"]) == process["birth"]


def _ours(group: LockRecord) -> bool:
    """Whether the group is still the recorded one: an id is not given away while its group has members."""
    try:
        os.killpg(group["group"], 0)
    except (ProcessLookupError, PermissionError):
        return False
    return birth(group["group"]) in ("", group["birth"])


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _members(groups: list[int]) -> list[int]:
    """Living processes of these groups; a zombie writes nothing any more."""
    found = []
    for pid in _processes() if groups else ():
        with contextlib.suppress(OSError, ProcessLookupError):
            if os.getpgid(pid) in groups and birth(pid):
                found.append(pid)
    return found


def _holders(lease: int) -> list[int]:
    """Processes other than this one that have the lease open."""
    wanted, found = os.fstat(lease), []
    for pid in _processes():
        with contextlib.suppress(OSError):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    what = link.stat()
                    if (what.st_dev, what.st_ino) == (wanted.st_dev, wanted.st_ino):
                        found.append(pid)
    return [pid for pid in found if pid != os.getpid()]


def _processes() -> list[int]:
    if Path("/proc/self").exists():
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - half the time
    import psutil

    return list(psutil.pids())


def _read(fd: int) -> LockRecord:
    """The record; one that was cut by a crash counts as empty, and the lease still tells who lives."""
    data = os.pread(fd, 1 << 20, 0)
    with contextlib.suppress(ValueError):
        record = json.loads(data)
        if isinstance(record, dict) and isinstance(record.get("groups"), list):
            return record
    return {}


def _write(fd: int, record: LockRecord) -> None:
    data = json.dumps(record).encode()
    os.pwrite(fd, data, 0)
    os.ftruncate(fd, len(data))
