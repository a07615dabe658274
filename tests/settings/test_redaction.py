"""Values that nobody may be shown: however they are spelled, wherever a text is cut."""

from __future__ import annotations

import base64
import html
import json

import pytest

from shared.redaction import StreamRedactor, conceal, concealed, cut, hide
from shared.settings import Settings

SECRET = 'sk-"Zq8&Wv3/Lk0+Xr5\\nTy7ü'
KEY = "sk-ant-api03-Kd7Pw2Jx9Vb4Mn6Qa1"


@pytest.fixture(autouse=True)
def hidden(nothing_hidden: None) -> None:
    """These two alone."""
    hide(SECRET, KEY, None, "", "short")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        html.escape(SECRET),
        KEY.upper(),
        "".join(f"%{byte:02x}" for byte in KEY.encode()),
        base64.b32encode(KEY.encode()).decode(),
        base64.encodebytes(b"export ANTHROPIC_API_KEY=" + KEY.encode() * 3).decode(),
        "\n".join(KEY),
        KEY[:9] + "\r\n" + KEY[9:],
        json.dumps({"lines": KEY[:9] + "\n\t" + KEY[9:]}),
        " ".join(KEY[at : at + 4] for at in range(0, len(KEY), 4)),
        KEY[:9] + "\x1b[31m" + KEY[9:] + "\x1b[0m",
        json.dumps(KEY[:9] + "\x1b[1;31m" + KEY[9:]),
        KEY[:9] + "\u200b" + KEY[9:20] + "\u00ad" + KEY[20:],
        f"{KEY[::-1]}",
    ],
    ids=lambda text: ascii(text)[:40],
)
def test_a_value_is_found_however_it_is_spelled(text: str) -> None:
    shown = conceal(text)
    assert "[hidden]" in shown
    seen = "".join(shown.split())
    for part in (KEY[9:20], SECRET[4:12], base64.b64encode(KEY.encode()).decode()[8:24]):
        assert part not in seen and part.upper() not in seen


def test_of_two_values_the_longer_one_is_taken_out_whole() -> None:
    hide(KEY[:12], KEY + "-and-more")
    assert conceal(f"{KEY}-and-more") == "[hidden]"


@pytest.mark.parametrize("text", ["short words", "sk-ant", "a b c", "\\n\\n", "", KEY[:11], "ü" * 40])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert conceal(text) == text


def test_what_becomes_json_stays_json_whatever_the_value_begins_with() -> None:
    hide("nothing-but-a-word")
    found = {"text": f"a\nothing-but-a-word {KEY}", "list": [KEY, 1, None], KEY: True}
    assert concealed(found) == {
        "text": "a\nothing-but-a-word [hidden]", "list": ["[hidden]", 1, None], "[hidden]": True,
    }  # fmt: skip
    plain = {"text": "nothing", "list": [1]}
    assert concealed(plain) is plain


@pytest.mark.parametrize("size", [1, 2, 3, 7, 12, 40])
def test_a_value_that_comes_in_pieces_is_shown_in_none_of_them(size: int) -> None:
    text = f"It is {KEY}, or {KEY[:10]} with more, or {base64.b64encode(KEY.encode()).decode()}. Best: sk"
    shown = StreamRedactor()
    pieces = [shown.add(text[at : at + size]) for at in range(0, len(text), size)]
    told = "".join([*pieces, shown.end()])
    assert (
        told.startswith("It is [hidden], or ") and told.endswith(" Best: sk") and told.count("[hidden]") >= 2
    )
    assert f"or {KEY[:10]} with more" in told, "what only begins like one is held back, not lost"
    assert KEY[12:] not in told and base64.b64encode(KEY.encode()).decode()[8:24] not in told


def test_text_that_begins_no_value_is_not_held_back() -> None:
    assert StreamRedactor().add("Hello there.") == "Hello there."


def test_half_a_value_that_nothing_follows_is_not_shown() -> None:
    shown = StreamRedactor()
    assert shown.add(f"It is {KEY[:20]}") + shown.end() == "It is [hidden]"


@pytest.mark.parametrize("at", range(4, len(KEY) - 4, 5))
def test_nothing_of_a_value_is_left_at_a_cut(at: int) -> None:
    assert cut(f"before {KEY[:at]}", f"{KEY[at:]} after") == ("before [hidden]", "[hidden] after")
    assert cut("before", "after") == ("before", "after")


def test_a_password_is_hidden_apart_from_the_address_that_it_stands_in() -> None:
    found = Settings(_env_file=None, REDIS_URL="rediss://ada:pass%2Fword77@redis.example:6380/0").secrets()
    assert {"pass%2Fword77", "pass/word77"} <= set(found)
    assert Settings(_env_file=None, REDIS_URL="redis://127.0.0.1:6379/0").secrets() == []
    assert Settings(_env_file=None, REDIS_URL="unix:///run/redis.sock?db=1").secrets() == []


def test_a_password_that_is_a_word_does_not_hide_the_word_elsewhere() -> None:
    address = "redis://:promptdock@127.0.0.1:6379/0"
    assert Settings(_env_file=None, REDIS_URL=address).secrets() == [address]
