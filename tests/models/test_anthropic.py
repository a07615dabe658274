"""Claude's adapter: the real SDK against a server that speaks its protocol, well and badly."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from email.utils import formatdate
from typing import Any

import pytest

from shared.errors import Fenced, ModelError, ModelOverloaded, ModelRefused, ModelUnusable
from shared.models.anthropic import manners, version
from shared.models.base import Delta, ToolSpec
from shared.models.remote import retry_after
from tests.models.conftest import Connect, ask, heard, until
from tests.support.messages_api import MODELS, MessagesApi
from tests.support.messages_script import Step

PLAN = ToolSpec("consult_planner", "Ask the Planner", {"type": "object", "properties": {}})
CALLS: tuple[dict[str, Any], ...] = (
    {
        "name": "consult_planner",
        "input": {"question": 'how, with "quotes" and ü?', "context": {"a": [1, None]}},
    },
    {"name": "consult_planner", "input": {}},
)


async def test_a_plain_answer_is_streamed_and_returned_whole(connect: Connect) -> None:
    deltas: list[Delta] = []
    with MessagesApi([Step(text="Hello there, how can I help you?")]) as api:
        answer = await connect(api.url).answer(ask(), deltas.append)
    assert answer.content == ({"type": "text", "text": "Hello there, how can I help you?"},)
    assert (answer.stop_reason, answer.model, answer.demo) == ("end_turn", "claude-sonnet-5-5", False)
    assert len(deltas) > 1
    assert heard(deltas, "text") == "Hello there, how can I help you?"
    assert heard(deltas, "waiting") == ""


async def test_thinking_and_several_calls_come_back_as_they_must_be_sent(connect: Connect) -> None:
    deltas: list[Delta] = []
    step = Step(thinking="let me see what there is", text="I ask.", tools=CALLS)
    with MessagesApi([step, Step(text="done")]) as api:
        model = connect(api.url)
        answer = await model.answer(ask(tools=(PLAN,)), deltas.append)
        thought, text, first, second = answer.content
        assert thought == {
            "type": "thinking",
            "thinking": "let me see what there is",
            "signature": "signature-1==",
        }
        assert text == {"type": "text", "text": "I ask."}
        assert first == {"type": "tool_use", "id": "toolu_0001_0", **CALLS[0]}
        assert second == {"type": "tool_use", "id": "toolu_0001_1", **CALLS[1]}
        assert answer.stop_reason == "tool_use"
        assert heard(deltas, "thinking") == "let me see what there is"

        results = [{"type": "tool_result", "tool_use_id": c["id"], "content": "{}"} for c in (first, second)]
        messages = (
            *ask().messages,
            {"role": "assistant", "content": list(answer.content)},
            {"role": "user", "content": results},
        )
        request = ask(tools=(PLAN,))
        await model.answer(type(request)(**{**vars(request), "messages": messages}))
        assert api.requests[1]["messages"] == list(messages)


async def test_usage_counts_cached_tokens_and_costs_money(connect: Connect) -> None:
    used = {
        "input_tokens": 1000,
        "output_tokens": 200,
        "cache_read_input_tokens": 30_000,
        "cache_creation_input_tokens": 4000,
    }
    with MessagesApi([Step(text="ok", usage=used), Step(text="ok", usage=used)]) as api:
        model = connect(api.url)
        usage = (await model.answer(ask())).usage
        strange = (await model.answer(ask(model="my-own-model"))).usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (1000, 200, 30_000, 4000)
    assert 0.001 < usage.cost < 0.1
    assert (strange.input, strange.cost) == (1000, 0.0)


async def test_a_request_is_cached_and_thinks_and_holds_no_sampling(connect: Connect) -> None:
    with MessagesApi() as api:
        await connect(api.url).answer(
            ask(system=("stable", "", "changing"), tools=(PLAN,), temperature=0.3, max_tokens=4096)
        )
        body, exchange = api.requests[0], api.exchanges[0]
    assert body["stream"] is True
    assert body["cache_control"] == {"type": "ephemeral"}
    assert body["system"] == [
        {"type": "text", "text": "stable", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "changing"},
    ]
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert body["tools"] == [
        {"name": "consult_planner", "description": "Ask the Planner", "input_schema": PLAN.schema}
    ]
    assert "temperature" not in body
    assert exchange.key == "a-key"


async def test_temperature_reaches_a_model_that_takes_it(connect: Connect) -> None:
    with MessagesApi() as api:
        await connect(api.url).answer(ask(model="claude-haiku-4-5", temperature=0.3))
        body = api.requests[0]
    assert body["temperature"] == 0.3
    assert "thinking" not in body


@pytest.mark.parametrize(
    ("model", "number", "thinks", "samples"),
    [
        ("claude-sonnet-5-5", (5, 5), True, False),
        ("claude-opus-4-7", (4, 7), True, False),
        ("claude-fable-5", (5, 0), True, False),
        ("claude-opus-4-6", (4, 6), False, True),
        ("claude-sonnet-4-5-20250929", (4, 5), False, True),
        ("claude-sonnet-4-20250514", (4, 0), False, True),
        ("claude-3-5-haiku-latest", (3, 5), False, True),
        ("anthropic.claude-opus-4-1-20250805-v1:0", (4, 1), False, True),
        ("my-own-model", None, False, False),
    ],
)
def test_each_model_is_asked_for_what_it_takes(
    model: str, number: tuple[int, int] | None, thinks: bool, samples: bool
) -> None:
    chosen = manners(model, 0.5, 4096)
    assert version(model) == number
    assert ("thinking" in chosen, "extra_body" in chosen) == (thinks, samples)


def test_a_model_that_takes_either_thinks_when_no_temperature_is_asked_for() -> None:
    assert "thinking" in manners("claude-sonnet-4-6", None, 4096)


def test_a_brief_answer_is_thought_about_briefly() -> None:
    assert manners("claude-sonnet-5-5", None, 512)["output_config"] == {"effort": "low"}
    assert "output_config" not in manners("claude-sonnet-5-5", None, 4096)


@pytest.mark.parametrize(
    "failure",
    [
        Step(status=529),
        Step(status=500),
        Step(status=429, retry_after=0.05),
        Step(text="half an ans", fault="cut"),
        Step(text="half an ans", fault="overloaded"),
        Step(text="half an ans", fault="unfinished"),
        Step(text="half an ans", fault="garbled"),
        Step(fault="cut"),
        Step(fault="empty"),
    ],
    ids=lambda step: f"{step.status}{step.fault}{'' if step.text else '-at-once'}",
)
async def test_a_failure_is_tried_again_and_the_person_hears_of_it(connect: Connect, failure: Step) -> None:
    deltas: list[Delta] = []
    with MessagesApi([failure, Step(text="whole")]) as api:
        answer = await connect(api.url).answer(ask(), deltas.append)
        assert len(api.requests) == 2
    assert answer.content == ({"type": "text", "text": "whole"},)
    kinds = [delta.kind for delta in deltas]
    assert kinds.count("waiting") == 1
    assert heard(deltas[kinds.index("waiting") :], "text") == "whole"
    assert "trying again" in heard(deltas, "waiting")


@pytest.mark.parametrize("name", ["retry-after", "retry-after-ms"])
async def test_a_wait_may_be_told_as_a_date_or_in_milliseconds(connect: Connect, name: str) -> None:
    far = {"retry-after": formatdate(time.time() + 500, usegmt=True), "retry-after-ms": "500000"}[name]
    with (
        MessagesApi([Step(status=429, headers={name: far})]) as api,
        pytest.raises(ModelOverloaded) as caught,
    ):
        await connect(api.url).answer(ask())
    assert caught.value.retry_after == pytest.approx(500, abs=5)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("86401", 86_400),
        ("1e300", 86_400),
        ("inf", 86_400),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400),
        ("-5", 0),
        ("-inf", 0),
        ("nan", None),
        ("soon", None),
    ],
)
def test_a_wait_is_at_most_a_day_and_what_is_no_number_is_none(header: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": header}) == seconds


async def test_a_limit_that_waiting_does_not_lift_is_not_waited_for(connect: Connect) -> None:
    spent = Step(status=429, message="spend limit reached", headers={"x-should-retry": "false"})
    with MessagesApi(lambda _body: spent) as api:
        with pytest.raises(ModelError, match="spend limit reached"):
            await connect(api.url).answer(ask())
        assert len(api.requests) == 1


async def test_a_success_is_not_asked_for_again(connect: Connect) -> None:
    with MessagesApi([Step(text="once"), Step(text="twice")]) as api:
        answer = await connect(api.url).answer(ask())
        assert (answer.content[0]["text"], len(api.requests)) == ("once", 1)


@pytest.mark.parametrize("failure", [Step(status=529), Step(text="half", fault="cut")], ids=["529", "cut"])
async def test_it_gives_up_when_its_time_is_over_and_not_before(connect: Connect, failure: Step) -> None:
    with MessagesApi(lambda _body: failure) as api:
        model = connect(api.url)
        with pytest.raises(ModelOverloaded):
            await model.answer(ask(deadline=2.0))
        assert len(api.requests) > 4


async def test_a_silence_is_told_long_before_it_is_the_end(connect: Connect) -> None:
    deltas: list[Delta] = []
    with MessagesApi([Step(text="half", fault="stall"), Step(text="whole")]) as api:
        model = connect(api.url, idle=3.0, quiet=1.0)
        answer = await model.answer(ask(), deltas.append)
    assert answer.content[0]["text"] == "whole"
    kinds = [delta.kind for delta in deltas]
    assert kinds.count("silent") == 1, "once in each silence"
    assert kinds.index("silent") < kinds.index("waiting")
    assert "asked again" in heard(deltas, "silent")


async def test_a_provider_that_sends_pings_is_not_silent(connect: Connect) -> None:
    deltas: list[Delta] = []
    with MessagesApi([Step(text="at last", pings=25, pace=0.1)]) as api:
        await connect(api.url, quiet=2.0).answer(ask(), deltas.append)
    assert "silent" not in [delta.kind for delta in deltas]


async def test_it_waits_as_long_as_the_provider_asks(connect: Connect) -> None:
    loop = asyncio.get_running_loop()
    with MessagesApi([Step(status=429, retry_after=0.6), Step(text="ok")]) as api:
        model = connect(api.url)
        await model.check()
        began = loop.time()
        await model.answer(ask())
        assert 0.6 <= loop.time() - began < 15


async def test_a_wait_past_the_deadline_is_not_begun(connect: Connect) -> None:
    with MessagesApi([Step(status=429, retry_after=600)]) as api:
        with pytest.raises(ModelOverloaded, match="slow down") as caught:
            await asyncio.wait_for(connect(api.url).answer(ask(deadline=60.0)), 30)
        assert (caught.value.retry_after, len(api.requests)) == (600.0, 1)


async def test_a_stalled_stream_is_found_and_tried_again(connect: Connect) -> None:
    deltas: list[Delta] = []
    with MessagesApi([Step(text="half", fault="stall"), Step(text="whole")]) as api:
        answer = await connect(api.url, idle=2.0).answer(ask(), deltas.append)
        assert answer.content[0]["text"] == "whole"
        assert "silent" in heard(deltas, "waiting")
        await until(lambda: api.exchanges[0].left)


async def test_silence_before_the_first_byte_is_found_too(connect: Connect) -> None:
    with MessagesApi([Step(text="late", delay=30), Step(text="whole")]) as api:
        answer = await connect(api.url, idle=2.0).answer(ask())
        assert answer.content[0]["text"] == "whole"


async def test_pings_keep_a_long_thought_alive(connect: Connect) -> None:
    with MessagesApi([Step(text="at last", pings=25, pace=0.1)]) as api:
        answer = await connect(api.url, idle=2.0).answer(ask())
        assert (answer.content[0]["text"], len(api.requests)) == ("at last", 1)


async def test_all_tries_together_end_at_the_deadline(connect: Connect) -> None:
    with MessagesApi([Step(text="half", fault="stall")]) as api:
        with pytest.raises(ModelOverloaded, match="within 2 s"):
            await connect(api.url).answer(ask(deadline=2.0))
        await until(lambda: api.exchanges[0].left)


@pytest.mark.parametrize("stop", ["refusal", "max_tokens", "pause_turn", "model_context_window_exceeded"])
async def test_every_stop_reason_comes_back_as_an_answer(connect: Connect, stop: str) -> None:
    with MessagesApi([Step(text="so far", stop=stop)]) as api:
        answer = await connect(api.url).answer(ask())
        assert (answer.stop_reason, len(api.requests)) == (stop, 1)


async def test_a_paused_turn_goes_on_with_the_same_blocks(connect: Connect) -> None:
    with MessagesApi([Step(thinking="hm", text="so far", stop="pause_turn"), Step(text="on")]) as api:
        model = connect(api.url)
        answer = await model.answer(ask())
        request = ask()
        messages = (*request.messages, {"role": "assistant", "content": list(answer.content)})
        again = await model.answer(type(request)(**{**vars(request), "messages": messages}))
        assert again.content[0]["text"] == "on"


async def test_a_text_block_without_words_is_left_out(connect: Connect) -> None:
    with MessagesApi([Step(text="\n\n", tools=CALLS)]) as api:
        answer = await connect(api.url).answer(ask(tools=(PLAN,)))
        assert [block["type"] for block in answer.content] == ["tool_use", "tool_use"]


async def test_a_key_that_was_changed_is_read_again(connect: Connect) -> None:
    with MessagesApi([Step(text="ok")], keys={"new"}) as api:
        answer = await connect(api.url, key=lambda: "new" if api.exchanges else "old").answer(ask())
        assert answer.content[0]["text"] == "ok"
        assert [exchange.key for exchange in api.exchanges] == ["old", "new"]


async def test_a_key_that_stays_wrong_is_refused_after_one_reload(connect: Connect) -> None:
    with MessagesApi(keys={"other"}) as api:
        with pytest.raises(ModelRefused, match="promptdock key set"):
            await connect(api.url).answer(ask())
        assert len(api.exchanges) == 2


@pytest.mark.parametrize("key", ["", "  ", "schlüssel", "two\nlines"])
async def test_what_cannot_be_a_key_is_refused_without_asking(connect: Connect, key: str) -> None:
    with MessagesApi() as api:
        with pytest.raises(ModelRefused):
            await connect(api.url, key=lambda: key).answer(ask())
        assert api.exchanges == []


@pytest.mark.parametrize(
    ("step", "fix"),
    [
        (Step(status=404, message="model: nope"), "PROMPTDOCK_MODEL"),
        (Step(status=400, message="Your credit balance is too low to access the API."), "credit"),
        (Step(status=402, error="billing_error", message="pay first"), "credit"),
    ],
)
async def test_a_model_that_is_not_there_or_not_paid_is_for_the_operator(
    connect: Connect, step: Step, fix: str
) -> None:
    with MessagesApi([step]) as api:
        with pytest.raises(ModelUnusable) as caught:
            await connect(api.url).answer(ask())
        assert len(api.requests) == 1
    assert caught.value.exit_code == 4 and fix in caught.value.fix


@pytest.mark.parametrize("status", [400, 404, 413])
async def test_what_cannot_work_is_not_tried_again(connect: Connect, status: int) -> None:
    with MessagesApi([Step(status=status, message="because of this")]) as api:
        with pytest.raises(ModelError, match="because of this") as caught:
            await connect(api.url).answer(ask())
        assert not isinstance(caught.value, ModelOverloaded | ModelRefused)
        assert len(api.requests) == 1


async def test_a_server_that_is_not_there_is_said_to_be_lost(connect: Connect) -> None:
    with MessagesApi() as api:
        url = api.url
    with pytest.raises(ModelOverloaded, match="connection to Anthropic was lost"):
        await connect(url).answer(ask(deadline=4.0))


async def test_an_address_that_is_none_is_not_tried_again(connect: Connect) -> None:
    with pytest.raises(ModelError, match="ANTHROPIC_BASE_URL") as caught:
        await connect("127.0.0.1:9").answer(ask())
    assert not isinstance(caught.value, ModelOverloaded)


@pytest.mark.parametrize(
    "step", [Step(text="half", fault="stall"), Step(delay=60), Step(text="slow " * 200, pace=0.05)]
)
async def test_cancelling_closes_the_connection(connect: Connect, step: Step) -> None:
    with MessagesApi([step]) as api:
        task = asyncio.create_task(connect(api.url).answer(ask()))
        await until(lambda: api.exchanges, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: api.exchanges[0].left)
        assert len(api.exchanges) == 1


async def test_cancelling_while_it_waits_ends_the_tries(connect: Connect) -> None:
    deltas: list[Delta] = []
    with MessagesApi([Step(status=429, retry_after=15)]) as api:
        task = asyncio.create_task(connect(api.url).answer(ask(), deltas.append))
        await until(lambda: deltas, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(api.requests) == 1


async def test_answers_at_the_same_time_do_not_mix(connect: Connect) -> None:
    with MessagesApi(lambda body: Step(text=f"you said {body['messages'][0]['content']}", pace=0.01)) as api:
        model = connect(api.url)
        answers = await asyncio.gather(*(model.answer(ask(f"number {n}")) for n in range(12)))
    assert [a.content[0]["text"] for a in answers] == [f"you said number {n}" for n in range(12)]


async def test_models_are_listed_and_the_key_is_checked(connect: Connect) -> None:
    with MessagesApi(keys={"a-key"}) as api:
        model = connect(api.url)
        assert await model.models() == list(MODELS)
        await model.check()
        api.keys = set()
        with pytest.raises(ModelRefused):
            await model.check()


async def test_a_check_without_a_server_says_so(connect: Connect) -> None:
    with MessagesApi() as api:
        url = api.url
    with pytest.raises(ModelError, match="lost"):
        await connect(url).check()


def test_the_heavy_library_is_imported_when_it_is_needed() -> None:
    heavy = "{'anthropic', 'httpx2', 'genai_prices'}"
    code = f"import sys, shared.models.anthropic; print({heavy} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(("looks", "sent"), [(0, 0), (1, 0), (2, 1), (3, 1)])
async def test_what_is_not_ours_any_more_is_not_sent(connect: Connect, looks: int, sent: int) -> None:
    """Neither at first nor again: it is asked when there is a connection, and once more before the body."""
    asked = 0

    async def ours() -> None:
        nonlocal asked
        asked += 1
        if asked > looks:
            raise Fenced("the turn belongs to another worker")

    with MessagesApi([Step(status=529), Step(text="too late"), Step(text="and later")]) as api:
        model = connect(api.url)
        with pytest.raises(Fenced, match="belongs to another"):
            await model.answer(ask(ours=ours))
        assert len(api.requests) == sent
        assert (await connect(api.url).answer(ask())).content  # neither is the server in the way of the next
