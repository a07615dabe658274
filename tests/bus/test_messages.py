"""The public contract: what may come in, what is refused and why, and what we send."""

from __future__ import annotations

import contextlib
import json
import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.bus import decisions, messages, reading
from shared.bus.keys import WIRE
from shared.errors import BadMessage
from shared.redaction import hide
from tests.bus.malformed import EVERYTHING, MISUSED, UNREADABLE, raw, said


def take(data: bytes) -> messages.AnyHuman:
    """A person's message all the way, as the intake takes it."""
    message = messages.human(reading.read(data))
    messages.deadline_ms(message.deadline)
    return message


@pytest.mark.parametrize("kind", EVERYTHING)
def test_malformed_input_is_refused_with_its_reason_and_quickly(kind: str) -> None:
    data, why = EVERYTHING[kind]
    started = time.process_time()  # of ours alone: others may have the machine
    with pytest.raises(BadMessage) as told:
        take(data)
    assert why in str(told.value)
    assert time.process_time() - started < 1.0
    assert len(str(told.value)) < 1000


def test_the_two_kinds_of_malformed_input_are_told_apart() -> None:
    for data, _ in MISUSED.values():
        reading.read(data)
    for data, _ in UNREADABLE.values():
        with pytest.raises(BadMessage):
            reading.read(data)


@pytest.mark.parametrize(
    ("data", "content"),
    [
        (said(), "hi"),
        (said(content='Größe 👋 \u2028 \u0000 \\ "'), 'Größe 👋 \u2028 \u0000 \\ "'),
        (b'{"user_id":"ann","content":"\\ud83d\\ude00"}', "😀"),
        (b' \n{"user_id":"ann","content":"hi"}\r\n', "hi"),
        (said(content="[[[[" * 100 + "{" * 100), "[[[[" * 100 + "{" * 100),
        (said(content='" \\" [ {' * 50), '" \\" [ {' * 50),
        (raw("[" * 63 + "]" * 63), "hi"),
        (raw("-0"), "hi"),
        (raw("12345678901234567890"), "hi"),
        (raw("[" + ",".join(["{}"] * 500) + "]"), "hi"),
        (said(content="x" * (reading.MAX_BYTES - 200)), "x" * (reading.MAX_BYTES - 200)),
    ],
)
def test_what_is_unusual_and_allowed_comes_through_unchanged(data: bytes, content: str) -> None:
    message = take(data)
    assert isinstance(message, messages.Said)
    assert message.content == content


def test_the_bound_on_size_is_exact() -> None:
    filler = reading.MAX_BYTES - len(said(content=""))
    assert isinstance(take(said(content="x" * filler)), messages.Said)
    with pytest.raises(BadMessage, match="too large"):
        take(said(content="x" * (filler + 1)))


def test_fields_that_nobody_knows_are_kept_and_passed_on() -> None:
    assert take(said(colour="green")).model_dump()["colour"] == "green"


@settings(max_examples=150)
@given(
    st.one_of(
        st.binary(max_size=300), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))
    )
)
def test_any_bytes_are_an_object_or_refused(data: bytes) -> None:
    with contextlib.suppress(BadMessage):
        assert isinstance(reading.read(data), dict)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
FIELDS = sorted(
    {
        *messages.Said.model_fields,
        *messages.ApprovalMessage.model_fields,
        *messages.CommandMessage.model_fields,
    }
)


@settings(max_examples=250)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=5))
def test_any_values_in_any_fields_are_a_message_or_refused(fields: dict[str, Any]) -> None:
    try:
        take(json.dumps({"user_id": "ann", "content": "hi", **fields}).encode())
    except BadMessage as error:
        assert str(error).encode()


@settings(max_examples=150)
@given(
    st.dictionaries(st.sampled_from(["id", "from", "to", "type", "payload", "hops", "deadline", "v"]), JSON)
)
def test_any_message_between_agents_is_a_message_or_refused(fields: dict[str, Any]) -> None:
    base = {"id": "r1", "from": "chatter", "to": "planner", "type": "question", "payload": {"question": "?"}}
    try:
        messages.agent(reading.read(json.dumps(base | fields).encode()))
    except BadMessage as error:
        assert str(error).encode()


def test_the_kinds_of_a_persons_message_are_told_by_their_type() -> None:
    assert isinstance(take(said()), messages.Said)
    assert isinstance(take(said(type="amend")), messages.Amend)
    assert isinstance(take(said(type="stop")), messages.Stop)
    assert isinstance(take(said(type="approval", approval_id="a", decision="deny")), messages.ApprovalMessage)
    assert isinstance(take(said(type="command", id="c", tool="list_projects")), messages.CommandMessage)


def test_without_a_session_it_is_the_persons_own_one() -> None:
    assert take(said(user_id="Ann_B@example.org")).session == "user:Ann_B@example.org"
    assert take(said(session_id="s1")).session == "s1"


ALIKE = [
    "a b",
    "a_b",
    "a%20b",
    "a%2520b",
    "a\u00a0b",
    "a\u2003b",
    "a  b",
    "a%",
    "a%~b",
    *("x" * n for n in (200, 199)),
]
ALIKE += ["x" * 180 + " " * 20, "x" * 180 + "_" * 20, "x" * 179 + " " * 21]


@pytest.mark.parametrize("kind", [messages.OWN, messages.COMMANDS, messages.PLAIN])
def test_no_two_people_have_one_default_session_and_each_can_be_named(kind: str) -> None:
    sessions = [messages.default_session(user, kind) for user in ALIKE]
    assert len(set(sessions)) == len(ALIKE)
    for user, session in zip(ALIKE, sessions, strict=True):
        assert session.startswith(kind) and take(said(user_id=user, session_id=session)).session == session


def request(**fields: Any) -> dict[str, Any]:
    asked = {"id": "r1", "from": "chatter", "to": "planner", "type": "question", "payload": {"question": "?"}}
    return asked | fields


@pytest.mark.parametrize("name", ["system", "operator", "human"])
def test_a_sender_with_a_reserved_name_is_refused(name: str) -> None:
    with pytest.raises(BadMessage, match="reserved"):
        messages.agent(request(**{"from": name}))


@pytest.mark.parametrize(
    "payload", [{}, {"question": 5}, {"question": " \n"}, {"question": None, "command_file": "# Do it"}]
)
def test_a_question_must_ask_something(payload: dict[str, Any]) -> None:
    with pytest.raises(BadMessage, match="must ask something"):
        messages.agent(request(payload=payload))
    assert messages.agent(request(payload={"command_file": "# Do it"})).type == "question"


@pytest.mark.parametrize("kind", ["response", "error", "progress", "cancel"])
def test_an_answer_must_say_what_it_answers(kind: str) -> None:
    with pytest.raises(BadMessage, match="request_id"):
        messages.agent(request(type=kind))
    for wrong in (7, "", None, ["r1"]):
        with pytest.raises(BadMessage, match="request_id"):
            messages.agent(request(type=kind, payload={"request_id": wrong}))
    assert messages.agent(request(type=kind, payload={"request_id": "r1"})).request_id == "r1"


@pytest.mark.parametrize(
    "fields",
    [
        {"id": None},
        {"id": "a b"},
        {"to": "Planner"},
        {"to": "agent:planner"},
        {"from": "../x"},
        {"from": ""},
        {"type": "order"},
        {"payload": []},
        {"payload": "text"},
        {"hops": -1},
        {"hops": 1001},
        {"hops": "1"},
        {"patience": "long"},
        {"v": WIRE + 1},
    ],
)
def test_a_message_between_agents_with_a_wrong_field_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(BadMessage):
        messages.agent(request(**fields))


def test_what_a_person_reads_holds_none_of_the_clusters_secrets() -> None:
    hide(secret := "sk-ant-of-the-output-0123456789")
    said = messages.Output(
        user_id="ann", content=f"It is {secret}", status="error", id="m.end", session_id="s"
    )
    assert json.loads(said.text("chatter-output"))["content"] == "It is [hidden]"


def test_an_output_says_where_and_when_it_was_sent() -> None:
    output = messages.Output(user_id="ann", content="Hi", status="complete", id="m.end", session_id="s")
    told = json.loads(output.text("chatter-output"))
    assert told.pop("timestamp").endswith("Z")
    assert told == {
        "user_id": "ann",
        "content": "Hi",
        "status": "complete",
        "id": "m.end",
        "session_id": "s",
        "answers": [],
        "via": "chatter-output",
        "v": WIRE,
    }


def test_the_closing_statuses_are_those_of_the_contract() -> None:
    assert {"complete", "error", "awaiting_input"} == messages.CLOSING


@pytest.mark.parametrize(
    ("iso", "moment"),
    [
        ("2030-01-31T12:00:00Z", datetime(2030, 1, 31, 12, tzinfo=UTC)),
        ("2030-01-31T12:00:00", datetime(2030, 1, 31, 12, tzinfo=UTC)),
        ("2030-01-31T12:00:00+02:00", datetime(2030, 1, 31, 12, tzinfo=timezone(timedelta(hours=2)))),
        ("2030-01-31", datetime(2030, 1, 31, tzinfo=UTC)),
    ],
)
def test_a_deadline_is_a_moment_in_utc_unless_it_says_otherwise(iso: str, moment: datetime) -> None:
    assert messages.deadline_ms(iso) == int(moment.timestamp() * 1000)


def test_no_deadline_is_none() -> None:
    assert messages.deadline_ms(None) == 0


@pytest.mark.parametrize("iso", ["0001-01-01T00:00:00+23:59", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"])
def test_a_deadline_of_long_ago_has_passed_and_is_neither_none_nor_relative(iso: str) -> None:
    assert 0 < messages.deadline_ms(iso) < 1000


def test_now_is_written_in_utc() -> None:
    assert abs(datetime.fromisoformat(messages.now()) - datetime.now(UTC)) < timedelta(seconds=5)
    assert messages.now().endswith("Z")


@pytest.mark.parametrize(
    ("text", "how", "id"),
    [
        ("yes b35d865e", ("allow_once", ""), "b35d865e"),
        ("No b35d, because it is late", ("deny", "because it is late"), "b35d"),
        ("always B35D865E.", ("always", ""), "b35d865e"),
        ("no because b35d", ("deny", "b35d"), ""),
        ("yes", ("allow_once", ""), ""),
        ("yes decade", None, ""),
        ("yes, and b35d too", None, ""),
        ("maybe b35d", None, ""),
    ],
)
def test_words_may_name_the_request_that_they_answer(text: str, how: object, id: str) -> None:
    assert (decisions.decision(text), decisions.named(text)) == (how, id)


@pytest.mark.parametrize(
    ("how", "texts"),
    [
        (
            "allow_once",
            ["yes", "Yes please", "yes, do it!", "ok", "OK.", "okay, go ahead", "y", "sure", "Yes, thanks.", "do it"],
        ),
        ("allow_once", ["please go ahead", "allow once", "yes 1a2b, please", "ok 1a2b", "yes please 1a2b"]),
        ("always", ["always", "yes, always", "Always, please", "always allow it", "always 1a2b, thanks"]),
        ("deny", ["no", "No thanks", "no, don't", "nope", "don’t", "no please do not do it", "no 1a2b, it is late"]),
        (
            None,
            [
                "yes?", "yes, but only the tests", "ok so what would it do", "yes 1a2b, but not now", "ok thanks",
                "thanks", "yesterday", "okay-dokey", "always ask me first", "yes and no", "not yet", "never mind",
                "sure, if it is safe", "do it later", "allow nothing", "no problem", "y u no", "yes\nrm -rf /",
            ],
        ),
    ],
)  # fmt: skip
def test_nothing_but_a_clear_yes_is_one(how: str | None, texts: list[str]) -> None:
    assert {text: (decisions.decision(text) or (None,))[0] for text in texts} == dict.fromkeys(texts, how)


def test_an_answer_that_says_more_than_yes_or_no_is_told_from_other_words() -> None:
    assert all(
        map(decisions.hedged, ("yes, but only the tests", "ok thanks", "Sure, if it is safe", "no problem"))
    )
    assert not any(
        map(decisions.hedged, ("yes", "no, it is late", "yesterday", "build a fence", "notes please"))
    )


@pytest.mark.parametrize("temperature", [-0.1, -99])
def test_a_temperature_out_of_bounds_is_refused_in_words(temperature: float) -> None:
    with pytest.raises(BadMessage) as caught:
        messages.human({"user_id": "ada", "content": "Hi", "temperature": temperature})
    assert "temperature: must be" in caught.value.why
    assert messages.human({"user_id": "ada", "content": "Hi", "temperature": 1.7}).type == "message"


def test_a_message_of_ours_is_written_with_the_contract_s_names_in_its_order() -> None:
    who = {"user_id": "ann", "session_id": "s"}
    message = messages.AgentMessage.outgoing(
        *("m1.p1", "chatter", "planner", "question", {"question": "Où?"}),
        hops=1, patience=2.5, origin={"session": "s"}, on_behalf_of=who,
    )  # fmt: skip
    sent = message.model_copy(update={"via": "agent:planner", "sig": "1.ab"}).to_bytes()
    by_hand = {
        "id": "m1.p1", "from": "chatter", "to": "planner", "type": "question", "payload": {"question": "Où?"},
        "timestamp": message.timestamp, "patience": 2.5, "hops": 1, "on_behalf_of": who,
        "origin": {"session": "s"}, "v": 1, "sig": "1.ab", "via": "agent:planner",
    }  # fmt: skip
    assert sent == json.dumps(by_hand, ensure_ascii=False).encode()
    assert messages.agent(reading.read(sent)).fields() == by_hand


def test_a_message_of_ours_says_nothing_of_what_was_not_set_and_null_of_what_was_set_to_none() -> None:
    message = messages.AgentMessage.outgoing("a", "chatter", "planner", "task", {}, on_behalf_of=None)
    assert list(message.fields()) == ["id", "from", "to", "type", "payload", "timestamp", "on_behalf_of", "v"]
    assert message.fields()["on_behalf_of"] is None


def test_what_json_cannot_write_is_sent_as_text_and_half_a_character_as_a_question_mark() -> None:
    payload = {"question": "a\ud800b", "file": Path("a.py")}
    sent = messages.AgentMessage.outgoing("a", "chatter", "planner", "question", payload).to_bytes()
    assert reading.read(sent)["payload"] == {"question": "a?b", "file": "a.py"}
