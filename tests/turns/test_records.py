"""The journal: what a release before wrote is read, and what we write is read there; and what is asked of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from shared.turns.records import (
    COMPRESS_ABOVE,
    AskRecord,
    BegunRecord,
    DecidedRecord,
    FinalRecord,
    JournalRecord,
    ModelRecord,
    NoteRecord,
    Records,
    ResultRecord,
    UnknownRecord,
    pack,
    parse,
    read,
)

# A line for each record as releases until now have written it, in Redis as it stands here.
LINES = (Path(__file__).parent / "journal.jsonl").read_bytes().splitlines()


@pytest.mark.parametrize("line", LINES, ids=lambda line: str(json.loads(line)["k"]))
def test_a_record_of_the_release_before_is_read_and_would_be_written_as_it_was(line: bytes) -> None:
    (record,) = read([line])
    assert not isinstance(record, UnknownRecord)
    assert record.to_bytes() == line


def test_there_is_such_a_line_for_every_kind() -> None:
    kinds = {type(record) for record in read(LINES)}
    assert kinds == set(get_args(JournalRecord)) - {UnknownRecord}


def test_a_record_that_was_compressed_is_read() -> None:
    long = {"k": "note", "text": "z" * COMPRESS_ABOVE}
    assert read([pack(long)]) == [NoteRecord(text=long["text"])]
    assert NoteRecord(text=long["text"]).to_bytes() == pack(long)


@pytest.mark.parametrize(
    "value", [{"k": "greeting", "at": 3, "to": ["ada"]}, {"k": "note", "text": "Hello", "by": {"id": "ada"}}]
)
def test_what_a_later_release_adds_stays_what_it_is(value: dict[str, Any]) -> None:
    assert parse(value).fields() == value


@pytest.mark.parametrize("value", [{}, {"k": 3}, {"k": "note"}, {"k": "result", "id": "c", "tool": "x"}])
def test_what_is_no_whole_record_is_not_taken_for_one(value: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        parse(value)


def test_half_a_character_in_the_words_of_a_model_breaks_no_record() -> None:
    words = "half \ud800 a character"
    block = {"type": "text", "text": words}
    for record in (
        NoteRecord(text=words),
        ModelRecord(content=[block], stop="end_turn", usage=(1, 1, 0, 0, 0.1)),
        ResultRecord(id="c", tool=words, content={words: words}, error=True),
    ):
        assert b"half ? a character" in record.to_bytes()


# -- what is asked of it -----------------------------------------------------------------------------------


def result(tool: str, says: str, error: bool = False) -> ResultRecord:
    return ResultRecord(id="c", tool=tool, content={"says": says}, error=error)


def ask(id: str, call: str, at: int = 10) -> AskRecord:
    return AskRecord(at=at, call=call, card={"id": id})


def decided(call: str, card: str = "", at: int = 15) -> DecidedRecord:
    return DecidedRecord(at=at, call=call, card=card, how="deny", by="ada")


def test_the_last_result_of_a_tool_is_of_its_newest_call_that_did_not_fail() -> None:
    journal = Records([result("a", "one"), result("a", "two"), result("b", "x"), result("a", "no", True)])
    assert journal.last_result("a") == {"says": "two"}
    assert journal.last_result("c") is None
    assert [one.content["says"] for one in journal.results("a")] == ["one", "two", "no"]


def test_the_first_of_a_kind_is_what_a_successor_goes_on_from() -> None:
    journal = Records([BegunRecord(at=1), BegunRecord(at=2), FinalRecord(payload={"answer": "yes"})])
    first, last = journal.first(BegunRecord), journal.last(BegunRecord)
    assert first is not None and last is not None and (first.at, last.at) == (1, 2)
    assert journal.final == {"answer": "yes"} and Records().final is None


def test_a_request_is_pending_until_it_is_answered_or_its_call_was_by_an_older_release() -> None:
    asked = [ask("r1", "t.1.1"), ask("r2", "t.1.1"), ask("r3", "t.1.2"), ask("r4", "t.1.3")]
    journal = Records([*asked, decided("t.1.1", "r1"), decided("t.1.2")])
    assert [one.request for one in journal.pending()] == ["r2", "r4"]
    assert [one.request for one in journal.asks("t.1.1")] == ["r1", "r2"]


def test_a_decision_is_that_of_its_request_and_call() -> None:
    journal = Records([decided("t.1.1", "r1", at=1), decided("t.1.1", "r2", at=2), decided("t.1.2", at=3)])
    found = [
        journal.decision("t.1.1", "r2"),
        journal.decision("t.1.2", "r3"),
        journal.decision("t.2.1", "r1"),
    ]
    assert [one and one.at for one in found] == [2, 3, None]


def test_the_time_that_people_take_is_counted_until_they_answer_or_until_now() -> None:
    journal = Records([ask("r1", "t.1.1", at=10), decided("t.1.1", "r1", at=15), ask("r2", "t.1.2", at=20)])
    assert journal.waited_ms(now=50) == 5 + 30
