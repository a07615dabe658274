"""One event to an address of the web: signed as Standard Webhooks says, to where it was judged, and nowhere else."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator

import pytest

from shared.errors import UsageError
from shared.guard.sandbox.addresses import Reach
from shared.notify import webhook
from tests.notify.receiver import Receiver, receiving

HERE = Reach(hosts=frozenset({"127.0.0.1"}))
KEY = b"k" * 32


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


async def sent(receiver: Receiver, path: str, reach: Reach = HERE) -> webhook.SendOutcome:
    return await webhook.send(
        receiver.url + path, KEY, "msg_1", int(time.time()), {"type": "test", "é": 1}, reach
    )


def test_the_signature_is_that_of_the_convention() -> None:
    # as the convention's own library for Python signs this
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjSw")
    made = webhook.headers(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert made == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,q6KMVIJHk4Gs770FfR5f591Ftx7uVJSGl5wHV1ri978=",
    }


async def test_what_is_sent_is_what_was_signed(receiver: Receiver) -> None:
    assert await sent(receiver, "/in?x=1") == webhook.SendOutcome(True, 200)
    [one] = receiver.received
    assert (one.path, one.body) == ("/in?x=1", '{"type":"test","é":1}'.encode())
    again = webhook.headers(KEY, "msg_1", int(one.headers["webhook-timestamp"]), one.body)
    assert again.items() <= one.headers.items()
    assert one.headers["content-type"] == "application/json"
    assert one.headers["host"] == receiver.url.removeprefix("http://")


@pytest.mark.parametrize(
    ("path", "status", "word"),
    [
        ("/away", 302, "nothing is sent to where it points"),
        ("/later", 503, "503"),
        ("/nonsense", None, "no HTTP"),
    ],
)
async def test_what_is_no_yes_is_a_failure(
    receiver: Receiver, path: str, status: int | None, word: str
) -> None:
    outcome = await sent(receiver, path)
    assert (outcome.ok, outcome.status) == (False, status)
    assert word in outcome.error
    assert [one.path for one in receiver.received] == [path]  # and it leads nowhere else
    assert outcome.after == (120 if path == "/later" else 0)


async def test_of_a_large_answer_nothing_is_read(receiver: Receiver) -> None:
    begun = time.monotonic()
    assert (await sent(receiver, "/large")).ok
    assert time.monotonic() - begun < 5


async def test_who_never_answers_is_waited_for_so_long(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "_PATIENCE", 0.3)
    outcome = await sent(receiver, "/never")
    assert not outcome.ok and "0.3 s" in outcome.error


async def test_who_wants_nothing_more_says_so(receiver: Receiver) -> None:
    receiver.answer = lambda _number: 410
    assert (await sent(receiver, "/in")).gone


async def test_a_place_that_the_owner_did_not_name_is_not_sent_to(receiver: Receiver) -> None:
    outcome = await sent(receiver, "/in", Reach())
    assert not outcome.ok and "private network" in outcome.error

    async def inside(_name: str) -> list[str]:
        return ["127.0.0.1"]

    port = receiver.url.rpartition(":")[2]
    named = await webhook.send(f"http://hooks.example:{port}/in", KEY, "m", 1, {}, Reach(resolve=inside))
    assert not named.ok and "127.0.0.1" in named.error
    assert receiver.received == []


async def test_nobody_there_is_told_without_the_address() -> None:
    outcome = await webhook.send("http://127.0.0.1:1/secret-path", KEY, "m", 1, {}, HERE)
    assert outcome.error == "nobody takes a connection there"


@pytest.mark.parametrize(
    "address",
    [
        "",
        "example.com/in",
        "ftp://example.com/in",
        "file:///etc/passwd",
        "https://user:password@example.com/in",
        "https://exa mple.com/in",
        "https://example.com/in\r\nX: y",
        "https://example.com/#x",
        "https://",
        "https://[::1",
        "https://example.com:99999/",
        "http://127.0.0.1/in",
        "http://localhost:8080/in",
        "http://2130706433/in",
        "http://[::ffff:127.0.0.1]/in",
        "http://169.254.169.254/latest",
        "http://10.0.0.1/in",
        "https://metadata.google.internal/",
        "https://example.com/" + "x" * 2000,
    ],
)
def test_what_is_no_address_of_the_web_is_refused(address: str) -> None:
    with pytest.raises(UsageError):
        webhook.check(address, Reach())


def test_lists_show_where_it_goes_and_not_its_secret_part() -> None:
    assert (
        webhook.check("https://hooks.example.com/T0/B1/s3cr3t?k=v", Reach()) == "https://hooks.example.com/…"
    )
    assert webhook.check("https://example.com", Reach()) == "https://example.com"
    assert webhook.check("http://127.0.0.1:8080/in", HERE) == "http://127.0.0.1:8080/…"
