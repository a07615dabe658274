"""How long the scheduler takes: `python -m benchmarks.scheduler` prints a decision on many tasks, in ms."""

from __future__ import annotations

import random
import statistics
import time

from shared.tasks.scheduler import AgentSlot, SchedulerSnapshot, SchedulerTask, Share, decide

ROUNDS = 30


def snapshot(tasks: int, edges: int, projects: int = 50, slots: int = 40) -> SchedulerSnapshot:
    """A board of tasks in some states, of which some wait for others."""
    chance = random.Random(7)
    names = [f"project{n}" for n in range(projects)]
    rows = [
        SchedulerTask(
            f"task{n}",
            chance.choice(names),
            chance.choice(["READY", "READY", "DEFINED", "BLOCKED"]),
            chance.randrange(200),
            since=-chance.random() * 9999,
            kind=chance.choice(["frontend", "backend", "both"]),
        )
        for n in range(tasks)
    ]
    needs = {row.id: (chance.choice(rows).id,) for row in chance.sample(rows, edges)}
    places = (AgentSlot("frontend", slots // 2), AgentSlot("backend", slots // 2))
    return SchedulerSnapshot(0.0, rows, tuple(Share(name) for name in names), places, needs)


def measure(tasks: int, edges: int) -> tuple[float, float]:
    """Median and worst of the rounds, in ms of processor time."""
    board, took = snapshot(tasks, edges), []
    for _ in range(ROUNDS):
        started = time.process_time()
        decide(board)
        took.append((time.process_time() - started) * 1000)
    return statistics.median(took), max(took)


def main() -> None:
    """Print a line for each size."""
    print(f"{'tasks':>8} {'edges':>8} {'median ms':>10} {'worst ms':>10}")
    for tasks, edges in ((100, 10), (1_000, 100), (10_000, 1_000), (10_000, 10_000)):
        median, worst = measure(tasks, edges)
        print(f"{tasks:>8} {edges:>8} {median:>10.2f} {worst:>10.2f}")


if __name__ == "__main__":
    main()
