"""Tasks as a board shows them."""

from __future__ import annotations

from shared.client import Client
from shared.client.views.tasks.board import board, changed
from shared.store.records import Task, TaskResult, TaskStatus, project_key


def task(slug: str, status: TaskStatus, **more: object) -> Task:
    return Task.model_validate(
        {"slug": slug, "title": slug, "status": status, "project_id": project_key("shop")} | more
    )


async def test_each_task_stands_in_the_column_of_what_it_waits_for(reader: Client) -> None:
    done = task("done-work", "COMPLETED", branch="promptdock/done-work")
    await (await reader.store()).upsert(
        [
            task("waits", "DEFINED"),
            task("runs", "IN_PROGRESS", assignee="backend"),
            task("asks", "WAITING_INPUT", question="Which?"),
            task("failed", "BLOCKED", error="it broke"),
            task("gone", "READY", archived=True),
            task("plain", "COMPLETED"),
            done,
            TaskResult(
                task_id=done.id, diff_stat=" a | 4 ++--\n 2 files changed, 3 insertions(+), 1 deletion(-)\n"
            ),
        ]
    )
    columns = {column.name: [card.id for card in column.cards] for column in await board(reader)}
    assert {name: sorted(ids) for name, ids in columns.items()} == {
        "ready": ["waits"],
        "running": ["runs"],
        "needs you": ["asks", "failed"],
        "review": ["done-work"],
        "done": ["plain"],
    }
    [card] = next(column.cards for column in await board(reader, "shop") if column.name == "review")
    assert (card.work, card.added, card.removed, card.files, card.project) == ("to merge", 3, 1, 2, "shop")
    assert all(not column.cards for column in await board(reader, "other"))


def test_what_changed_is_read_from_the_last_line_of_the_statistics() -> None:
    assert changed(" a.py | 7 +++++++\n 1 file changed, 7 insertions(+)\n") == (7, 0, 1)
    assert changed(" 3 files changed, 2 deletions(-)") == (0, 2, 3)
    assert changed("") == (0, 0, 0)
