"""The long run: `python -m tests.faults --scale 0.1`, or `make faults ARGS="--rows freeze roll"`.

At scale 1: 100,000 messages, 1,000 freezes, 100 rolling replacements, 200 random pairs of faults, and 100,000
messages more without any fault. A line of
figures is printed per row; the exit code is 1 where a promise did not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.faults import rows, suite, tasks
from tests.faults.checker import Findings
from tests.faults.cluster import LEASE, cluster
from tests.faults.person import person
from tests.faults.suite import Row
from tests.faults.workload import Load

MESSAGES = 100_000
GROWTH = 64.0  # KiB that a worker may grow per 1,000 messages
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- figures: written by make faults -->", "<!-- end of figures -->"
PEOPLE: dict[str, Any] = {"own": 12, "plain": 12, "pause": 0.3}
SOAK = Row(rows.soak, "none, for a long time", (11,), long=1, load={"pause": 0.05})
TASKS = "kill_backend"


def main() -> None:
    """Run the rows that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes; 1 takes hours")
    parser.add_argument("--rows", nargs="*", default=[], help="only these")
    parser.add_argument("--write", action="store_true", help="write the table into docs/reliability.md")
    parser.add_argument("--list", action="store_true", help="list the rows and end")
    chosen = parser.parse_args()
    known = [*suite.OPEN, SOAK, *suite.DYING]
    names = [row.name for row in known] + [TASKS]
    if chosen.list:
        print(*names, sep="\n")
        return
    if unknown := set(chosen.rows) - set(names):
        parser.error(f"there is no row {', '.join(sorted(unknown))}; --list tells which there are")
    wanted = set(chosen.rows) or set(names)
    told = {row.name: row for row in known if row.name in wanted}

    def note(found: list[Findings]) -> None:
        print(found[-1].line(), *found[-1].notes, flush=True)
        if chosen.write:
            PAGE.write_text(_page(PAGE.read_text("utf-8"), found, told, chosen.scale), "utf-8")

    found = asyncio.run(_all(list(told.values()), TASKS in wanted, chosen.scale, note))
    sys.exit(any(_broken(one) for one in found))


async def _all(
    wanted: list[Row], with_tasks: bool, scale: float, note: Callable[[list[Findings]], None]
) -> list[Findings]:
    found = []
    with tempfile.TemporaryDirectory(prefix="promptdock-faults-", ignore_cleanup_errors=True) as name:
        async for one in _rows(Path(name), wanted, with_tasks, scale):
            found.append(one)
            note(found)
    return found


async def _rows(folder: Path, wanted: list[Row], with_tasks: bool, scale: float) -> AsyncIterator[Findings]:
    people = PEOPLE["own"] + PEOPLE["plain"]
    each = max(5, int(MESSAGES * scale / sum(row.share for row in suite.OPEN) / people))
    for row in wanted:
        if row in suite.DYING:
            continue
        # A cluster of its own for each row: what one left behind is no other's fault, and memory is compared.
        async with (
            cluster(folder / row.name, proxied=True, MODEL_SILENCE="2000") as made,
            person(made) as who,
        ):
            number = int(MESSAGES * scale / people) if row is SOAK else int(each * row.share)
            load = Load(made, each=number, **{**PEOPLE, **row.load})
            times = max(1, round(row.long * scale))
            yield await rows.play(made, row.name, row.hurt, load, times, person=who, patience=120)
    if dying := [row for row in wanted if row in suite.DYING]:
        environment = suite.dying(folder / "deaths", long=True)
        async with cluster(folder / "dying", **environment) as made, person(made) as who:
            for row in dying:
                load = Load(made, **{"each": row.long, **row.load})
                yield await rows.play(made, row.name, row.hurt, load, row.long, person=who, patience=120)
    if with_tasks:
        (folder / "tasks").mkdir()
        about: dict[str, Any] = {**tasks.ENVIRONMENT, "PROMPTDOCK_FAULT_ONCE": str(folder / "tasks")}
        shape: dict[str, Any] = {"chatters": 1, "planners": 0, "backends": 1}
        async with cluster(folder / "backend", **shape, **about) as made, person(made) as who:
            yield await tasks.kill_backend(made, who, await tasks.link(made, who))


def _broken(row: Findings) -> dict[str, float]:
    """The promises that did not hold."""
    too_much = {"growth": row.growth} if row.growth is not None and row.growth > GROWTH else {}
    return {**row.broken, **too_much}


def _page(text: str, found: list[Findings], known: dict[str, Row], scale: float) -> str:
    """The page with the table of this run between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{_table(found, known, scale)}\n\n{END}{after}"


def _table(found: list[Findings], known: dict[str, Row], scale: float) -> str:
    messages, faults = sum(row.sent for row in found), sum(row.faults for row in found)
    lines = [
        f'{datetime.now(UTC):%Y-%m-%d}, `make faults ARGS="--scale {scale:g}"`: {messages:,} messages and '
        f"{faults:,} faults, Python {platform.python_version()}, {os.cpu_count()} cores shared with other work, "
        f"lease {LEASE / 1000:g} s.",
        "",
        "| row | fault | promises | faults | messages | lost | twice | errors | bought again | in flight | refused "
        "| plain missed | plain swapped | taken over, p50 / p99 | holds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in found:
        about = known.get(row.row)
        fault = about.fault if about else "kill -9 of Backend in the middle of its tools"
        promises = ", ".join(map(str, about.promises if about else (4, 5, 6)))
        took = f"{row.quantile(0.5):.1f} / {row.quantile(0.99):.1f} s" if row.recoveries else ""
        broken = ", ".join(f"{name} {value:g}" for name, value in _broken(row).items())
        plain = f"{row.missed} | {row.swapped}"
        grown = f"grew {row.growth:.0f} KiB per 1,000" if row.growth is not None else "yes"
        if about is SOAK and row.growth is None:
            grown = "yes; too short for growth"
        lines.append(
            f"| {row.row} | {fault} | {promises} | {row.faults} | {row.sent:,} | {row.lost} | {row.doubled} "
            f"| {row.errors} | {row.rebought} | {row.in_flight} | {row.stale} | {plain} | {took} | {broken or grown} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
