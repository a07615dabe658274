"""The short version of every row; the long one is `make faults`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from shared import failpoints
from shared.guard.permissions.reading import only_reads
from tests.faults import rows, suite, tasks
from tests.faults.checker import Findings, arrived
from tests.faults.cluster import LEASE, cluster
from tests.faults.person import person
from tests.faults.workload import Load

EACH = 5  # messages of each person
PATIENT = 2 * LEASE  # a Redis that stands still beside other tests is taken for dead by a short one
SILENCE = "700"  # milliseconds after which a model that stalls is given up


async def test_answers_to_plain_messages_are_waited_for_as_long_as_more_of_them_come() -> None:
    for come, missed in ((6, 0), (4, 2)):  # so many of six that were heard are answered, one after the other
        left, quiet = 6, 0

        async def missing(last: int = 6 - come) -> int:
            nonlocal left
            left -= left > last
            return left

        async def rest() -> bool:
            nonlocal quiet
            quiet += 1
            return True

        await arrived(missing, rest, 0.1)
        assert (left, quiet > 0) == (missed, True)


@pytest.mark.timeout(400)
def test_what_was_accepted_is_answered_once_whatever_breaks(tmp_path: Path) -> None:
    """One cluster, hurt in one way after the other."""

    async def run() -> list[Findings]:
        found = []
        async with (
            cluster(tmp_path, lease=PATIENT, proxied=True, MODEL_SILENCE=SILENCE) as made,
            person(made) as who,
        ):
            for row in suite.OPEN:
                load = Load(made, each=EACH, **row.load)
                found.append(await rows.play(made, row.name, row.hurt, load, row.short, person=who))
        return found

    found = asyncio.run(run())
    print(*(row.line() for row in found), sep="\n")
    assert {row.row: (row.broken, row.notes) for row in found if row.broken} == {}
    assert all(row.sent >= EACH * 8 for row in found)
    hurt = [seconds for row in found for seconds in row.recoveries]
    assert hurt and max(hurt) < 15, "what a fault interrupted was not taken over"


@pytest.mark.timeout(300)
def test_a_worker_may_die_at_any_point_of_a_turn(tmp_path: Path) -> None:
    """At each named point, then only behind tool results, then of a poisoned message."""

    async def run() -> dict[str, Findings]:
        found = {}
        dying = suite.dying(tmp_path / "deaths")
        async with cluster(tmp_path / "cluster", **dying) as made, person(made) as who:
            for row in suite.DYING:
                load = Load(made, **{"each": row.short, **row.load})
                found[row.name] = await rows.play(made, row.name, row.hurt, load, row.short, person=who)
            found["poison"].notes = [
                str(fields[1])
                for _, fields in await made.bus.command(
                    "XRANGE", f"{made.queues['chatter'].prefix}dead", "-", "+"
                )
            ]
        return found

    found = asyncio.run(run())
    print(*(row.line() for row in found.values()), sep="\n")
    assert {row.row: (row.broken, row.notes) for row in found.values() if row.broken} == {}
    deaths = tmp_path / "deaths"
    assert suite.died(deaths, "pt") == len(rows.POINTS) + len(rows.ASKED)
    assert suite.died(deaths, "rs") == 4
    assert suite.died(deaths, "sl") == 4
    assert [row.errors for row in found.values()] == [0, 0, 0, 1], "only the poisoned message fails"
    assert found["poison"].notes == ["b'poison'"]


@pytest.mark.timeout(300)
def test_the_tools_of_a_task_take_effect_once_when_its_worker_is_killed(tmp_path: Path) -> None:
    """A command, a new file, a change of it; and a command that still runs when its worker dies."""

    async def run() -> tuple[Findings, list[str], list[Any]]:
        (tmp_path / "deaths").mkdir()
        once: dict[str, Any] = {"PROMPTDOCK_FAULT_ONCE": str(tmp_path / "deaths")}
        shape: dict[str, Any] = {"chatters": 1, "planners": 0, "backends": 1}
        async with (
            cluster(tmp_path / "cluster", **shape, **tasks.ENVIRONMENT, **once) as made,
            person(made) as who,
        ):
            found = await tasks.kill_backend(made, who, await tasks.link(made, who))
            return found, tasks.refused(made), await tasks.outcomes(made)

    found, refused, outcomes = asyncio.run(run())
    print(found.line())
    assert (found.broken, found.notes) == ({}, [])
    # Files are probed, and only of commands nobody knows: the model is told so, and so is the person.
    assert all("whether bash took effect is not known" in told for told in refused)
    # Whoever is taken over first is first to be told: the outcomes are looked at by whose they are.
    unknown = [
        told["user_id"] for told in outcomes if "whether it took effect is not known" in told["content"]
    ]
    assert (len(outcomes), sorted(unknown)) == (4, ["tk-o0", "tk-o3"])


@pytest.mark.parametrize(
    "command",
    ["cat a.txt", "git log -3 --oneline", "grep -n x a.py | sort | uniq -c", "test -f a && wc -l a"],
)
def test_a_command_that_only_reads_may_run_again(command: str) -> None:
    assert only_reads(command)


@pytest.mark.parametrize(
    "command",
    [
        *("echo a > b", "sort -o a b", "find . -delete", "git commit -m x", "cat $(rm a)", "cat a; rm a"),
        *("uniq a b", "python -c 1", "git -c core.pager=x log", "make test", "", "cat 'a"),
    ],
)
def test_a_command_that_may_change_something_does_not_run_again(command: str) -> None:
    assert not only_reads(command)


@pytest.mark.parametrize(
    ("mechanism", "hurt", "goes", "lease"),
    [
        ("fencing", rows.freeze, "doubled", 600),
        ("journal", rows.results, "rebought", 600),
        ("clock", rows.asleep, "rebought", LEASE),
    ],
)
def test_the_suite_notices_that_a_mechanism_is_off(
    mechanism: str, hurt: rows.Hurt, goes: str, lease: int, tmp_path: Path
) -> None:
    """A suite that cannot go red proves nothing."""

    async def run() -> Findings:
        tag = {"results": "rs", "asleep": "sl"}.get(hurt.__name__)
        dying = suite.dying(tmp_path / "deaths") if tag else {}
        off: dict[str, Any] = {"PROMPTDOCK_WITHOUT": mechanism, **dying}
        async with cluster(tmp_path / "cluster", chatters=2, planners=0, lease=lease, **off) as made:
            load = Load(made, own=1 if tag else 4, plain=0, each=4, kinds=("look",), tag=tag or "fr")
            return await rows.play(made, mechanism, hurt, load, 2, patience=8)

    assert goes in asyncio.run(run()).broken


def test_the_suite_notices_that_gaps_are_not_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The person's line is dead for a moment, and nobody looks for what was said meanwhile."""
    monkeypatch.setenv("PROMPTDOCK_WITHOUT", "gap-fill")
    failpoints.read()

    async def run() -> Findings:
        async with cluster(tmp_path, chatters=1, planners=0, proxied=True) as made, person(made) as who:
            load = Load(made, plain=0, each=8, kinds=("say",))
            return await rows.play(made, "gap-fill", rows.half_open_person, load, person=who)

    assert "unseen" in asyncio.run(run()).broken
