"""Three providers in one cluster: Chatter on one, Planner on another, a conversation on a third; each dead in turn."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from shared.bus.keys import Names
from tests.support.chat_api import ChatApi
from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Rules, Step
from tests.support.ollama_api import OllamaApi
from tests.support.processes import PATIENCE, Site, site, until
from tests.support.wire import Wire

CLAUDE, GPT, LOCAL = "claude-sonnet-5-5", "gpt-6.1-sol", "qwen3:8b"
SILENCE = 2000  # milliseconds for which a stream may be silent
USED = {"input_tokens": 1000, "output_tokens": 100}
RULES: list[dict[str, Any]] = [
    {"system": "You are Planner", "steps": [{"text": "Two steps will do.", "usage": USED}]},
    {
        "user": "plan",
        "steps": [
            {"tools": [{"name": "consult_planner", "input": {"question": "{{user}}"}}], "usage": USED},
            {"text": "The plan: {{result}}", "usage": USED},
        ],
    },
    {"steps": [{"text": "You said: {{user}}", "usage": USED}]},
]


@dataclass
class Providers:
    """The servers of the three."""

    claude: MessagesApi
    gpt: ChatApi
    local: OllamaApi

    def alive(self) -> None:
        """All of them answer by the rules."""
        for api in (self.claude, self.gpt, self.local):
            api.script = Rules(RULES)


@pytest.fixture(scope="module")
def servers() -> Iterator[Providers]:
    """Three of them, each speaking its own protocol."""
    with MessagesApi() as claude, ChatApi(refuses=["temperature"]) as gpt, OllamaApi() as local:
        made = Providers(claude, gpt, local)
        made.alive()
        yield made


@pytest.fixture(autouse=True)
def recovered(servers: Providers) -> Iterator[None]:
    """What one test killed is back for the next."""
    yield
    servers.alive()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, valkey: str, servers: Providers) -> Iterator[Site]:
    """A home that knows all three."""
    settings = {
        "ANTHROPIC_API_KEY": "sk-ant-test-key-0000",
        "ANTHROPIC_BASE_URL": servers.claude.url,
        "OPENAI_API_KEY": "sk-openai-test-key-0000",
        "OPENAI_BASE_URL": f"{servers.gpt.url}/v1",
        "OLLAMA_BASE_URL": servers.local.url,
        "PLANNER_MODEL": GPT,
        "MODEL_PATIENCE": "30000",
        "MODEL_FALLBACK": "500",
        "MODEL_SILENCE": str(SILENCE),
    }
    with site(tmp_path_factory.mktemp("site"), valkey, **settings) as made:
        made.up("chatter", "planner", CHATTER_MODEL=f"{CLAUDE},{GPT}")
        yield made


def usage(place: Site, session: str) -> list[dict[str, Any]]:
    sql = "select provider, model, input, output, cost from token_usage where session_id = ? order by created_at"
    return place.query(sql, session)


def test_chatter_and_planner_think_with_models_of_two_providers(
    wire: Wire, place: Site, servers: Providers
) -> None:
    said = wire.ask("plan it", user="ann")
    assert said["content"].startswith("The plan:") and said["model"] == CLAUDE and "footer" not in said
    assert [body["model"] for body in servers.gpt.requests] == [GPT]
    sql = "select agent, provider, model, input, output, cost from token_usage order by created_at"
    rows = until(lambda: r if len(r := place.query(sql)) >= 3 else None, what="the rows of usage")
    assert rows is not None
    by = {(row["agent"], row["provider"], row["model"]): row for row in rows}
    assert set(by) == {("chatter", "anthropic", CLAUDE), ("planner", "openai", GPT)}
    assert by["planner", "openai", GPT]["cost"] == pytest.approx((1000 * 2 + 100 * 10) / 1e6)
    assert all((row["input"], row["output"]) == (1000, 100) and row["cost"] > 0 for row in rows)


def test_a_conversation_sticks_to_the_model_that_its_person_chose(
    wire: Wire, place: Site, servers: Providers
) -> None:
    refused = wire.command("choose_model", user="bob", model="qwen3")
    assert refused["status"] == "error" and LOCAL in refused["content"]
    assert wire.command("choose_model", user="bob", model=LOCAL)["result"]["model"] == LOCAL
    assert [wire.ask(words, user="bob")["model"] for words in ("one", "two")] == [LOCAL, LOCAL]
    assert servers.local.requests[-1]["messages"][-1]["content"].find("two") >= 0
    assert wire.ask("three", user="cat")["model"] == CLAUDE, "another's conversation keeps its own"
    (start, *_) = [event for event in wire.on("events:user:bob") if event["event"] == "start"]
    assert start["model"] == LOCAL
    rows = until(lambda: r if len(r := usage(place, "user:bob")) >= 2 else None, what="the rows of usage")
    assert rows is not None
    assert {(row["provider"], row["model"], row["cost"]) for row in rows} == {("ollama", LOCAL, 0.0)}
    wire.command("choose_model", user="bob")
    assert wire.ask("four", user="bob")["model"] == CLAUDE


def test_a_message_names_its_own_model_and_an_unknown_one_is_refused_with_the_nearest(wire: Wire) -> None:
    assert wire.ask("hello", user="dan", model="gpt-4.1-mini")["model"] == "gpt-4.1-mini"
    refused = wire.ask("hello", user="dan", model="gpt-6-sol")
    assert refused["status"] == "error" and GPT in refused["content"] and "gpt-6-sol" in refused["content"]
    assert wire.ask("hello", user="dan")["model"] == CLAUDE


def test_a_temperature_that_is_not_taken_is_said_in_the_footer(wire: Wire) -> None:
    said = wire.ask("hello", user="eve", model=GPT, temperature=0.2)
    assert said["footer"] == [f"{GPT} takes no temperature: 0.2 was left out"]
    taken = wire.ask("hello", user="eve", model=LOCAL, temperature=0.2)
    assert "footer" not in taken
    assert "takes 0 to 1" in wire.ask("hello", user="eve", temperature=2)["content"]


def test_everybody_shows_the_names_of_models(wire: Wire, place: Site) -> None:
    for agent, model in (("planner", GPT), ("chatter", CLAUDE)):
        card = wire.wait("agent:status", lambda card, agent=agent: card["agent"] == agent)  # type: ignore[misc]
        assert card["model"] == model
    kept = wire.redis.hgetall(Names(place.names.namespace).model_lists)
    assert set(kept) == {b"anthropic", b"openai", b"ollama"}


def test_with_claude_dead_the_next_of_the_chain_answers_and_the_footer_says_so(
    wire: Wire, place: Site, servers: Providers
) -> None:
    servers.claude.script = lambda _body: Step(status=529)
    said = wire.ask("hello", user="fay", session_id="fay")
    assert (said["status"], said["model"]) == ("complete", GPT)
    assert said["footer"] == [f"{CLAUDE} could not answer (Anthropic is overloaded): {GPT} did"]
    asked = len(servers.claude.requests)
    assert wire.ask("again", user="fay", session_id="fay")["model"] == GPT
    assert len(servers.claude.requests) == asked, "it is left alone for a while"
    rows = until(lambda: usage(place, "fay"), what="the rows of usage")
    assert {(row["provider"], row["model"]) for row in rows} == {("openai", GPT)}


@pytest.mark.parametrize("where", ["before a byte", "in the middle"])
def test_one_that_is_open_and_says_nothing_is_given_up_for_the_next_of_the_chain(
    wire: Wire, servers: Providers, where: str
) -> None:
    assert wire.ask("hello", model=LOCAL)["model"] == LOCAL, "who answers is asked first again"
    stalled = Step(text="I begin and", fault="stall") if where == "in the middle" else Step(hold="for ever")
    servers.local.script = lambda _body: stalled
    said = wire.ask("hello", user="jo", model=f"{LOCAL},{CLAUDE}")
    assert (said["status"], said["model"], said["content"]) == (
        "complete",
        CLAUDE,
        "You said: [from jo]: hello",
    )
    assert said["footer"] == [f"{LOCAL} could not answer (Ollama is silent): {CLAUDE} did"]


def test_one_that_is_slow_but_says_something_now_and_then_is_waited_for(
    wire: Wire, servers: Providers
) -> None:
    assert wire.ask("hello", model=LOCAL)["model"] == LOCAL
    servers.local.script = lambda _body: Step(text="It takes its time, and is heard.", pace=SILENCE / 2500)
    said = wire.ask("hello", user="kim", model=f"{LOCAL},{CLAUDE}")
    assert (said["model"], said["content"]) == (LOCAL, "It takes its time, and is heard.")
    assert "footer" not in said


def test_a_worker_that_is_killed_in_a_fallback_leaves_a_turn_that_is_answered_once_and_paid_once(
    wire: Wire, place: Site, servers: Providers
) -> None:
    assert wire.ask("hello", model=LOCAL)["model"] == LOCAL
    servers.local.script = lambda _body: Step(status=503)
    asked = threading.Event()

    def next_one(_body: dict[str, Any]) -> Step:
        if asked.is_set():
            return Step(text="By another worker.", usage=USED)
        asked.set()
        return Step(hold="for ever")

    servers.gpt.script = next_one
    sent = wire.send("hello", user="lea", model=f"{LOCAL},{GPT}", session_id="lea")
    assert asked.wait(PATIENCE)
    chatter = next(one for one in place.workers if one.name == "chatter" and one.process.poll() is None)
    chatter.kill()
    place.up("chatter", CHATTER_MODEL=f"{CLAUDE},{GPT}")
    said = wire.closing(sent)
    assert (said["content"], said["model"]) == ("By another worker.", GPT)
    assert said["footer"] == [f"{LOCAL} could not answer (Ollama is overloaded): {GPT} did"]
    rows = until(lambda: usage(place, "lea"), what="the rows of usage")
    assert [(row["provider"], row["model"], row["input"]) for row in rows] == [("openai", GPT, 1000)]
    assert rows[0]["cost"] == pytest.approx((1000 * 2 + 100 * 10) / 1e6)
    assert len([one for one in wire.closings("lea") if one["in_reply_to"] == sent]) == 1


def test_who_waits_for_a_provider_is_shown_as_waiting_with_the_reason_and_since_when(
    wire: Wire, servers: Providers
) -> None:
    servers.local.script = lambda _body: Step(status=529, retry_after=1)
    sent = wire.send("hello", user="mia", model=LOCAL)
    start = len(wire.on("agent:status"))

    def shown() -> dict[str, Any] | None:
        cards = [one for one in wire.on("agent:status", start) if one["agent"] == "chatter"]
        doing = [turn for card in cards if card["status"] == "waiting" for turn in card["doing"]]
        return next((one for one in doing if one["turn"] == sent and one.get("waits")), None)

    doing = until(shown, what="a card that says that it waits")
    assert doing is not None
    assert "Ollama is overloaded" in doing["waits"] and doing["since"] <= doing["waits_since"]
    servers.alive()
    assert wire.closing(sent)["model"] == LOCAL


def test_with_planners_provider_dead_chatter_is_told_why_and_answers(wire: Wire, servers: Providers) -> None:
    servers.gpt.script = lambda _body: Step(status=503, retry_after=3600)
    said = wire.ask("plan it", user="gus", model=CLAUDE)
    assert said["status"] == "complete" and "overloaded" in said["content"]


def test_with_ollama_dead_its_conversation_fails_in_words_and_all_others_go_on(
    wire: Wire, servers: Providers
) -> None:
    servers.local.script = lambda _body: Step(status=500, message="out of memory", retry_after=3600)
    failed = wire.ask("hello", user="hal", model=LOCAL)
    assert failed["status"] == "error" and "Ollama is overloaded" in failed["content"]
    assert wire.ask("hello", user="ida", model=CLAUDE)["status"] == "complete"
    servers.alive()
    assert wire.ask("hello", user="hal", model=LOCAL)["status"] == "complete"
