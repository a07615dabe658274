"""What has the shape of a secret is found wherever it stands, also in pieces; ordinary text stays as it is."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import time
import uuid
from pathlib import Path

import pytest

from shared import shapes
from shared.redaction import StreamRedactor, redact, redacted
from shared.shapes import SHAPES, hide
from tests.support.secrets import KEY, SECRETS

ROOT = Path(__file__).parents[2]


def test_every_shape_has_an_example() -> None:
    assert {shape.what for shape in SHAPES} == set(SECRETS)


@pytest.mark.parametrize("what", SECRETS)
@pytest.mark.parametrize("around", ["{}", "a {} b", 'key = "{}"', "({})", "x={},", "- {}\n- more"])
def test_each_is_taken_out_and_what_is_around_it_stays(what: str, around: str) -> None:
    for text, secret in SECRETS[what]:
        shown = redact(around.format(text))
        assert secret not in shown and "[hidden]" in shown, text
        head, _, tail = around.partition("{}")
        assert shown.startswith(head) and shown.endswith(tail), shown


@pytest.mark.parametrize("what", SECRETS)
def test_each_is_taken_out_of_json_and_of_what_repr_makes_of_it(what: str) -> None:
    for text, secret in SECRETS[what]:
        value = redacted({"list": ["before", f"line\n{text}\n"], text: 1, "n": None})
        told = json.dumps(value)
        assert secret not in told and value["list"][0] == "before" and value["n"] is None
        assert secret.replace("\n", "\\n") not in redact(repr(f"line\n{text}\nmore"))
        assert secret not in redact(json.dumps({"raw": f"line\n{text}"}))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 17, 64, 1000])
@pytest.mark.parametrize("what", SECRETS)
def test_in_a_stream_none_of_it_is_shown_whatever_the_pieces_are(what: str, size: int) -> None:
    for text, secret in SECRETS[what]:
        whole = f"So it is: {text}\n\nThat is all."
        shown = StreamRedactor()
        pieces = [shown.add(whole[at : at + size]) for at in range(0, len(whole), size)]
        told = "".join([*pieces, shown.end()])
        assert secret not in told and told == redact(whole), text
        assert told.startswith("So it is: ") and told.endswith("\n\nThat is all.")


def test_a_stream_of_ordinary_text_is_shown_whole_and_soon() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    shown, told, late = StreamRedactor(), "", 0
    for at in range(0, len(text), 4):
        told += shown.add(text[at : at + 4])
        late = max(late, at + 4 - len(told))
    assert told + shown.end() == redact(text) and late < 100


ORDINARY = [
    "task-management-for-people-who-like-it",
    "sk-some-kebab-case-class-name-of-a-page",
    "import sk-learn; risk-free-and-ask-me-anything-you-like",
    'if "-----BEGIN PRIVATE KEY-----" in text: raise ValueError("a private key was found")',
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ0mO\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZI\n-----END PUBLIC KEY-----",
    "http://localhost:8080/@scope/package and https://example.org:8443/a?b=c@d",
    "postgres://user:${PASSWORD}@host/db and redis://:<password>@host and https://x:{token}@host/",
    "git@github.com:owner/repository.git, ssh://git@github.com/owner/repository.git",
    "npm_config_registry=x npm_package_name HF_HOME hf_transfer pypi-mirror",
    "Authorization: Bearer $TOKEN, Authorization: Bearer <token>, bearer authentication",
    "x-api-key: ${ANTHROPIC_API_KEY}; set ANTHROPIC_API_KEY to sk-ant-...",
    "shared.executors.claude_code.ClaudeCode.run and tests.attacks.test_secrets_of_a_long_name",
    "M12345678901234567890123.module.a_function_with_a_very_long_name",
    "eyJust a word; eyJhbGciOiJIUzI1NiJ9 alone is a header",
    "AKIA is how it begins, ASIAN and AKIAX too",
    "sha256:" + hashlib.sha256(b"x").hexdigest(),
    hashlib.sha1(b"x").hexdigest(),
    str(uuid.UUID(int=77)),
    "token_usage, secret_access_key_id, api_key=None, access_key: str",
    "key-value store, key-0123456789",
    "12345678:AAPL and 10:45",
    "a.b.c.d 1.2.3 www.example.org v1.22.333",
]


@pytest.mark.parametrize("text", ORDINARY, ids=lambda text: text[:40])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


def test_hashes_pictures_and_numbers_are_no_secrets() -> None:
    chance = random.Random(7)
    for _ in range(200):
        data = chance.randbytes(chance.choice([16, 20, 32, 3000]))
        texts = [data.hex(), base64.b64encode(data).decode(), str(uuid.UUID(bytes=data[:16]))]
        texts.append(f"data:image/png;base64,{texts[1]}")
        assert [hide(text) for text in texts] == texts


def test_the_text_of_this_repository_is_no_secret() -> None:
    """Its code and pages, but for the tests, which hold examples."""
    found = {}
    for folder in ("agents", "gateways", "shared", "docs", "supabase"):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in (".py", ".md", ".toml", ".sql", ".lua") and file.is_file():
                for line in file.read_text("utf-8").splitlines():
                    if redact(line) != line:
                        found[f"{file.relative_to(ROOT)}: {line}"] = redact(line)
    assert list(found) == [line for line in found if "://" in line or "x-api-key" in line], found
    assert len(found) < 12, found


def test_it_takes_time_in_proportion_to_the_text() -> None:
    """Of each shape its beginnings over and over, and what nearly is one."""
    for shape in SHAPES:
        for mark in shape.marks:
            for part in (mark, f" {mark}", f"{mark}a1A.", f"eyJaaaaaaaaaa.{mark}", f"://{mark}:"):
                text = part * (60_000 // len(part))
                begun = time.process_time()
                hide(text)
                shapes.begun(text)
                assert time.process_time() - begun < 2.0, (shape.what, part)
    text = "-----BEGIN RSA PRIVATE KEY-----" + "A" * 60_000
    begun = time.process_time()
    assert len(hide(text + text)) < 1000 and time.process_time() - begun < 2.0


def test_the_key_of_a_file_is_taken_out_whole() -> None:
    assert redact(f"cat id_rsa\n{KEY}\ndone") == "cat id_rsa\n[hidden]\ndone"
    torn = KEY[: len(KEY) // 2]
    assert redact(f"{torn}\n\nand no more.") == "[hidden]\n\nand no more."
