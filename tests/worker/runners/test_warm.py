"""What a conversation loaded stays loaded while the provider's cache of it is warm."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from shared.conversation.past import History
from shared.turns.records import Records, ResultRecord, SituationRecord
from shared.turns.turn import Turn
from shared.worker.runners.chat import warm

NOW = 10_000_000


@dataclass
class Journal:
    """As much of a turn as is looked at."""

    records: Records = field(default_factory=Records)


def _turn(*loads: str) -> Turn:
    records: list[Any] = [SituationRecord(at=NOW, text="[now]")]
    records += [
        ResultRecord(id=name, tool="load_tools", content={"loaded": name}, error=False) for name in loads
    ]
    return cast(Turn, Journal(Records(records)))


def _past(*window: dict[str, Any]) -> History:
    return History(window=list(window), seq=len(window))


def test_the_first_turn_begins_with_nothing_and_leaves_what_it_loaded() -> None:
    assert warm.before(_turn("git"), _past()) == []
    assert warm.after(_turn("git", "files", "git"), _past()) == ["git", "files"]


def test_what_was_loaded_before_comes_first_in_its_order() -> None:
    past = _past({"at": NOW - 1000, "loaded": ["hooks", "git"]})
    assert warm.after(_turn("git", "files"), past) == ["hooks", "git", "files"]


@pytest.mark.parametrize(("age", "kept"), [(warm.WARM, ["git"]), (warm.WARM + 1, [])])
def test_it_is_let_go_once_the_cache_is_cold(age: int, kept: list[str]) -> None:
    assert warm.before(_turn(), _past({"at": NOW - age, "loaded": ["git"]})) == kept


def test_news_of_tasks_between_two_turns_do_not_unload_anything() -> None:
    past = _past({"at": NOW - 2000, "loaded": ["git"]}, {"at": NOW - 1000})
    assert warm.before(_turn(), past) == ["git"]


def test_a_turn_that_has_not_begun_keeps_nothing() -> None:
    turn = cast(Turn, Journal(Records([])))
    assert warm.before(turn, _past({"at": NOW, "loaded": []})) == []
