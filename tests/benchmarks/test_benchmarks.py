"""Each part of the benchmark runs, and its figures are what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import bus, execute, long, memory, search, turn, view
from benchmarks.peers import installed
from benchmarks.peers.__main__ import PEERS
from benchmarks.race import Lap, lap, ratio, summed, typical
from benchmarks.side import Side
from benchmarks.sides import SIDES


async def test_all_sides_are_raced_and_shown_with_their_ratio_to_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await bus.measure(tmp_path, bus.Size(rounds=1, seconds=0.02, levels=(1, 3)), syncs=["everysec"])
    table = capsys.readouterr().out.partition("appendfsync")[2].splitlines()
    rows = {line.split()[0]: re.findall(r"\d+ \( *(\d+\.\d+)\)", line) for line in table[3:]}
    assert list(rows) == list(SIDES)
    assert all(len(ratios) == 6 and all(float(figure) > 0 for figure in ratios) for ratios in rows.values())
    assert set(rows["plain"]) == {"1.00"}


async def test_a_turn_without_tools_costs_an_idle_worker_one_round_trip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await turn.measure(tmp_path, rounds=1, seconds=0.02, levels=(1,), counted=5)
    assert "  commands of the worker to Redis: 1 until the answer" in capsys.readouterr().out


async def test_the_executor_adds_less_than_a_millisecond_to_a_tool(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await execute.measure(tmp_path, seconds=0.3)
    added = re.search(r"p50 ([\d.]+) us more", capsys.readouterr().out)
    assert added is not None and 0 < float(added[1]) < 1000


def test_the_first_request_is_little_more_than_a_quarter_of_the_same_with_all_tools(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tiered, full = view.sizes("tiered"), view.sizes("full")
    assert tiered["request"] <= 0.27 * full["request"], (tiered, full)
    assert full["index"] <= 2 and full["tools"] < full["request"]
    view.measure()
    assert f"request {tiered['request']}" in capsys.readouterr().out


async def test_a_search_is_measured_in_each_store_by_how_many_rows_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await search.measure(tmp_path, (400,), 5)
    parts = capsys.readouterr().out.partition("SQLite, 400 rows")[2].split("Postgres")
    for part in parts if "left out" not in parts[1] else parts[:1]:
        fit = [int(found) for found in re.findall(r"5 times; (\d+) rows fit", part)]
        assert len(fit) == 6 and fit[4] < 40 < 200 < fit[5], part
        assert len(re.findall(r"p50 [\d.]+, p99 [\d.]+", part)) == 6


def test_a_lap_tells_the_middle_the_worst_hundredth_and_the_rate() -> None:
    assert summed([float(us) for us in range(100, 0, -1)], elapsed=2.0) == Lap(p50=51, p99=100, rate=50)


class Prompt(Side):
    """Answers as soon as it is asked."""

    async def serve(self) -> None: ...
    async def open(self) -> None: ...
    async def close(self) -> None: ...

    async def send(self, request: str) -> None:
        self.answered(request)


async def test_a_lap_lasts_until_an_answer_came_however_short_it_is() -> None:
    measured = await lap(Prompt(""), in_flight=2, seconds=0.0)
    assert measured.p50 > 0 and measured.rate > 0


def test_a_ratio_compares_laps_of_the_same_round() -> None:
    slow_round, quick_round = Lap(200, 0, 0), Lap(20, 0, 0)
    base = [Lap(100, 0, 0), Lap(10, 0, 0)]
    assert ratio([slow_round, quick_round], base, "p50") == 2.0
    assert typical([slow_round, quick_round], "p50") == 110.0


@pytest.mark.parametrize("peer", PEERS)
def test_a_peer_is_pinned_with_all_that_it_needs(peer: str) -> None:
    pins = (installed.PINS / f"{peer}.txt").read_text("utf-8").splitlines()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins)
    assert re.fullmatch(r"[\w-]+ \d[\w.]+(, [\w-]+ \d[\w.]+)*", installed.release(peer))


async def test_a_made_history_is_asked_and_recalled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await memory.measure(tmp_path, (400,), 10, postgres=False)
    told = capsys.readouterr().out
    assert float(re.findall(r"recall@10 ([\d.]+)", told)[0]) > 0.5
    assert len(re.findall(r"p50 [\d.]+ ms, p99 [\d.]+ ms", told)) == 3


def test_the_same_history_is_made_each_time_and_a_third_of_it_is_corrected() -> None:
    one, other = memory.history(2000), memory.history(2000)
    assert one == other
    assert 0.2 < sum(bool(planted.earlier) for planted in one.planted) / len(one.planted) < 0.45


def test_a_long_conversation_asks_for_what_was_said_long_before() -> None:
    lines, asked = long.script(200)
    assert (lines, asked) == long.script(200)
    assert len(lines) == 200 and len(asked) == long.ROOMS
    for one in asked:
        assert one.value in lines[one.said] and one.value not in lines[one.turn]
        assert one.turn - one.said >= 40
