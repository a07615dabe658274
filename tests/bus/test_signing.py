"""What is signed is known as a gateway's word: unchanged, fresh, and meant for that channel."""

from __future__ import annotations

import hashlib
import hmac
import json
import shutil
import subprocess
import time
from typing import Any

import pytest

from shared.bus.signing import FRESH_MS, Signer, canonical
from shared.errors import Refused

SECRET = "a secret of thirty-two characters"
MESSAGE: dict[str, Any] = {"id": "m-1", "user_id": "ada", "content": 'Grüße, "x"\n', "roles": ["b", "a"]}


def sent(at_ms: int | None = None, **more: Any) -> dict[str, Any]:
    message = MESSAGE | more
    return message | {"sig": Signer(SECRET).sign("human-input", message, at_ms)}


def test_the_canonical_form_is_as_documented() -> None:
    message = {
        "v": 1,
        "b": [1, 0.7, True, None],
        "a": {"z": "ü", "y": '\x01\n\x7f"\\/'},
        "sig": "x",
        "via": "y",
    }
    expected = '{"a":{"y":"\\u0001\\n\x7f\\"\\\\/","z":"ü"},"b":[1,0.7,true,null],"v":1}'
    assert canonical(message) == expected.encode()


def test_a_signature_can_be_made_by_hand() -> None:
    body = '{"content":"Hi","id":"m-1","user_id":"ada"}'
    code = hmac.new(SECRET.encode(), f"human-input\n1000\n{body}".encode(), hashlib.sha256).hexdigest()
    message = {"user_id": "ada", "content": "Hi", "id": "m-1"}
    assert Signer(SECRET).sign("human-input", message, 1000) == f"1000.{code}"


def test_what_was_signed_is_known_also_with_the_channel_that_our_copy_names() -> None:
    assert Signer(SECRET).signed("human-input", sent())
    assert Signer(SECRET).signed("human-input", sent() | {"via": "human-input"})


@pytest.mark.parametrize(
    "change",
    [
        {"user_id": "eve"}, {"content": "else"}, {"id": "m-2"}, {"roles": ["Boss"]}, {"session_id": "s"},
        {"type": "approval"}, {"sig": ""}, {"sig": 7}, {"sig": "x"}, {"sig": "1.2"}, {"sig": None}, {"force": True},
    ],
)  # fmt: skip
def test_what_was_changed_is_not(change: dict[str, Any]) -> None:
    assert not Signer(SECRET).signed("human-input", sent() | change)


def test_nor_what_was_made_for_another_channel_or_with_another_secret() -> None:
    assert not Signer(SECRET).signed("x:human-input", sent())
    assert not Signer(SECRET + "!").signed("human-input", sent())


@pytest.mark.parametrize("off", [FRESH_MS + 5_000, -120_000])
def test_nor_what_is_old_or_of_the_future(off: int) -> None:
    with pytest.raises(Refused, match="too old"):
        Signer(SECRET).check("human-input", sent(int(time.time() * 1000) - off))


def test_nor_what_has_no_id_by_which_a_copy_would_be_known() -> None:
    message = {"user_id": "ada", "content": "Hi"}
    message["sig"] = Signer(SECRET).sign("human-input", message)
    with pytest.raises(Refused, match="needs an id"):
        Signer(SECRET).check("human-input", message)


def test_a_message_that_is_written_already_is_signed_with_what_is_added() -> None:
    text = json.dumps(MESSAGE, ensure_ascii=False)
    told = json.loads(Signer(SECRET).stamped("chatter-output", text, kept=True))
    assert {name: told[name] for name in (*MESSAGE, "kept")} == {**MESSAGE, "kept": True}
    assert Signer(SECRET).signed("chatter-output", told)
    assert not Signer(SECRET).signed("chatter-output", told | {"kept": False})


# What `JSON.stringify` makes of these, with the keys in order: RFC 8785.
NUMBERS = {
    "1.0": "1", "-0.0": "0", "0.5": "0.5", "100.0": "100", "1e16": "10000000000000000", "1e20": "1" + "0" * 20,
    "1e21": "1e+21", "0.00001": "0.00001", "1.5e-5": "0.000015", "0.000001": "0.000001", "1e-7": "1e-7",
    "-2.5e-9": "-2.5e-9", "7": "7", "12345678901234567890": "12345678901234567890",
}  # fmt: skip


@pytest.mark.parametrize(("written", "expected"), NUMBERS.items())
def test_a_number_is_signed_as_other_languages_write_it(written: str, expected: str) -> None:
    message = {"a": json.loads(written), "b": [json.loads(written)], "c": f"{written}, 1.0, 2e-07] \\"}
    text = json.dumps(message["c"])
    assert canonical(message).decode() == f'{{"a":{expected},"b":[{expected}],"c":{text}}}'


_PROGRAM = """
const crypto = require('crypto'), secret = process.argv[1], channel = 'human-input', at = Date.now()
const order = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))
const write = v => Array.isArray(v) ? '[' + v.map(write) + ']' : v && typeof v === 'object'
  ? '{' + Object.keys(v).sort(order).map(k => JSON.stringify(k) + ':' + write(v[k])) + '}' : JSON.stringify(v)
const message = JSON.parse(process.argv[2])
const code = crypto.createHmac('sha256', secret).update(channel + '\\n' + at + '\\n' + write(message)).digest('hex')
console.log(JSON.stringify({...message, sig: at + '.' + code}))
"""


def test_a_client_in_javascript_signs_what_counts_here() -> None:
    if (node := shutil.which("node")) is None:
        pytest.skip("no node is here")
    message = {"user_id": "ada", "id": "m", "content": 'ä\u2028\u0007\U0001f600/< "1.0"', "temperature": 1.0}
    message |= {"more": {"\U0001f600": [1e-7, 0.00001, 1e20], "\uffee": None, "b": True, "a": -0.0}}
    told = subprocess.run(
        [node, "-e", _PROGRAM, SECRET, json.dumps(message)], capture_output=True, check=True, timeout=60
    )
    assert Signer(SECRET).signed("human-input", json.loads(told.stdout))
