"""Many tasks on real processes: nobody's work is lost or done twice, whoever works side by side."""

from __future__ import annotations

from pathlib import Path

from tests.support.board import Board, Size, TimedApi
from tests.support.processes import site
from tests.support.valkey import valkey
from tests.support.wire import Wire

__all__ = ["valkey"]


def test_twelve_tasks_of_two_repositories_by_three_workers_are_all_done_and_merged_once(
    valkey: str, tmp_path: Path
) -> None:
    size = Size(tasks=12, repositories=2, workers=3, thinking=0.1)
    with TimedApi(size) as api:
        model = {"ANTHROPIC_API_KEY": "sk-ant-test-key-0000", "ANTHROPIC_BASE_URL": api.url}
        with site(tmp_path, valkey, **model) as place, Wire(place.url, place.names) as wire:
            board = Board(size, place, wire, api)
            board.prepare()
            board.run(patience=110)
            board.check()
            assert board.at_once() > 1
