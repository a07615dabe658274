"""What tests cost: processor time of all that they start, and time in which they only wait.

    make test ARGS="-p tests.support.meter"

prints both by folder, by file and by fixture. Each process of pytest puts itself into a control group of its own
(version 2 of them, on Linux, as root), and what it starts belongs there too, also what nobody waits for.

A wait is a second in which nothing of the group ran or wanted to: what a busy machine takes away counts as neither.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic  # as it is: some tests put their own into its module
from typing import Any

import pytest

_SHOWN = 40  # lines of a table


@dataclass(frozen=True)
class Spent:
    """Seconds since something."""

    processor: float = 0.0
    waited: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.processor + other.processor, self.waited + other.waited)


class Group:
    """The control group of this process."""

    def __init__(self) -> None:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        root = next((Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"), None)
        if root is None:
            raise pytest.UsageError("tests.support.meter needs Linux with control groups of version 2")
        self._folder = root / f"tests-{os.getpid()}"
        try:
            self._folder.mkdir()
            (self._folder / "cgroup.procs").write_text(str(os.getpid()))
        except OSError as error:
            raise pytest.UsageError(f"tests.support.meter may make no control group: {error}") from error
        self._root = root

    def read(self) -> tuple[float, float, float]:
        """Now, the processor time so far, and how long something waited for a processor; in seconds."""
        used = (self._folder / "cpu.stat").read_text().split()[1]
        held = (self._folder / "cpu.pressure").read_text().split("\n")[0].rpartition("=")[2]
        return monotonic(), int(used) / 1e6, int(held) / 1e6

    def since(self, began: tuple[float, float, float]) -> Spent:
        passed, used, held = (now - then for now, then in zip(self.read(), began, strict=True))
        return Spent(used, max(0.0, passed - used - held))

    def close(self) -> None:
        for pid in (self._folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (self._root / "cgroup.procs").write_text(pid)
        self._folder.rmdir()


class Meter:
    """Notes each phase of a test and each fixture on the phase's report, which the process that prints is sent."""

    def __init__(self) -> None:
        self._group = Group()
        self._fixtures: list[tuple[str, float, float]] = []
        self._spent = Spent()
        self._began = self._group.read()

    def _phase(self) -> Iterator[None]:
        began = self._group.read()
        try:
            yield
        finally:
            self._spent = self._group.since(began)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Generator[None, Any, Any]:
        with contextlib.contextmanager(self._phase)():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        with contextlib.contextmanager(self._phase)():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None, Any, Any]:
        with contextlib.contextmanager(self._phase)():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        began = self._group.read()
        try:
            return (yield)
        finally:
            spent = self._group.since(began)
            self._fixtures.append(
                (f"{fixturedef.baseid}::{fixturedef.argname}", spent.processor, spent.waited)
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        report = yield
        report.spent = [self._spent.processor, self._spent.waited]
        report.fixtures, self._fixtures = self._fixtures, []
        return report

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        spent = self._group.since(self._began)
        told = getattr(session.config, "workeroutput", {})
        told["collected"] = [spent.processor, spent.waited]

    def pytest_unconfigure(self) -> None:
        self._group.close()


class Tables:
    """Adds up what the reports say."""

    def __init__(self) -> None:
        self.folders: defaultdict[str, Spent] = defaultdict(Spent)
        self.files: defaultdict[str, Spent] = defaultdict(Spent)
        self.tests: defaultdict[str, Spent] = defaultdict(Spent)
        self.fixtures: defaultdict[str, Spent] = defaultdict(Spent)
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.collected = Spent()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        spent = Spent(*getattr(report, "spent", (0.0, 0.0)))
        file = report.nodeid.split("::")[0]
        folder = "/".join(file.split("/")[:2])
        self.folders[folder] += spent
        self.files[file] += spent
        self.tests[f"{report.when} {report.nodeid}"] += spent
        if report.when == "call":
            for name in (folder, file):
                self.counts[name] += 1
        for name, *fixture in getattr(report, "fixtures", ()):
            self.fixtures[name] += Spent(*fixture)
            self.counts[name] += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.collected += Spent(*getattr(node, "workeroutput", {}).get("collected", ()))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        total = sum(self.folders.values(), self.collected)
        terminalreporter.section("what the tests cost")
        terminalreporter.write_line(
            f"processor {total.processor:.0f} s, waiting {total.waited:.0f} s; "
            f"of these to find the tests {self.collected.processor:.0f} s"
        )
        for title, table in (
            ("folder", self.folders),
            ("file", self.files),
            ("fixture", self.fixtures),
            ("test", self.tests),
        ):
            terminalreporter.write_line(f"\n processor   waiting   number  {title}")
            most = sorted(table.items(), key=lambda row: -row[1].processor - row[1].waited)
            for name, spent in most[: _SHOWN if title != "test" else 2 * _SHOWN]:
                terminalreporter.write_line(
                    f"{spent.processor:10.1f}{spent.waited:10.1f}{self.counts.get(name, 1):9}  {name}"
                )


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Meter())
        return
    config.pluginmanager.register(Tables())
    if not config.getoption("numprocesses", None):
        config.pluginmanager.register(Meter())
