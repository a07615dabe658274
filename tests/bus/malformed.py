"""Malformed input of every kind, with a piece of the reason that is given; shared by several suites."""

from __future__ import annotations

import json
from typing import Any


def said(**fields: Any) -> bytes:
    """A person's message, as JSON that may be wrong."""
    return json.dumps({"user_id": "ann", "content": "hi", **fields}).encode()


def raw(value: str) -> bytes:
    """A person's message with a field whose value is written as it stands."""
    return b'{"user_id":"ann","content":"hi","x":' + value.encode() + b"}"


DEEP = 100_000
UNREADABLE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "not JSON"),
    "not UTF-8": (b'{"user_id":"ann","content":"\xff\xfe"}', "not UTF-8"),
    "UTF-16": ('{"user_id":"ann","content":"hi"}'.encode("utf-16"), "not UTF-8"),
    "a byte order mark": (b"\xef\xbb\xbf" + said(), "not JSON"),
    "words": (b"hello", "not JSON"),
    "cut": (b'{"user_id":"ann","content":"h', "not JSON"),
    "two documents": (said() + said(), "not JSON"),
    "a comment": (b'{"user_id":"ann","content":"hi"} // ok', "not JSON"),
    "null": (b"null", "not a JSON object"),
    "a number": (b"42", "not a JSON object"),
    "a string": (b'"hi"', "not a JSON object"),
    "a list": (b'[{"user_id":"ann","content":"hi"}]', "not a JSON object"),
    "a megabyte": (said(content="x" * 1_048_577), "too large"),
    "nested lists": (raw("[" * DEEP + "]" * DEEP), "too deeply"),
    "nested objects": (raw('{"a":' * 20_000 + "1" + "}" * 20_000), "too deeply"),
    "nested and never closed": (b"[" * DEEP, "too deeply"),
    "65 levels": (raw("[" * 64 + "]" * 64), "too deeply"),
    "a key that stands twice": (b'{"user_id":"ann","user_id":"bob","content":"hi"}', "stands twice"),
    "a key that stands twice inside": (raw('{"a":1,"a":2}'), "stands twice"),
    "NaN": (raw("NaN"), "NaN is not a number"),
    "Infinity": (raw("-Infinity"), "Infinity is not a number"),
    "1e309": (raw("1e309"), "too large"),
    "10**400": (raw("1" + "0" * 400), "too large"),
    "10**5000": (raw("1" + "0" * 5000), "too large"),
    "half a character": (b'{"user_id":"ann","content":"\\ud800"}', "half a character"),
    "half a character as a key": (raw('{"\\uDC00":1}'), "half a character"),
    "__proto__": (raw('{"__proto__":{"admin":true}}'), "reserved name"),
    "constructor": (b'{"user_id":"ann","content":"hi","constructor":{}}', "reserved name"),
    "__class__": (raw('{"__class__":"x"}'), "reserved name"),
}
MISUSED: dict[str, tuple[bytes, str]] = {
    "no user": (b'{"content":"hi"}', "user_id"),
    "no content": (b'{"user_id":"ann"}', "content"),
    "a user who is a number": (said(user_id=7), "user_id"),
    "a user without a name": (said(user_id=""), "user_id"),
    "a user with a line break": (said(user_id="ann\nadmin"), "user_id"),
    "a very long user": (said(user_id="a" * 201), "user_id"),
    "content that is an object": (said(content={"text": "hi"}), "content"),
    "content that is nothing": (said(content=None), "content"),
    "content that is empty": (said(content=""), "content: it is empty"),
    "content that is blank": (said(content=" \t\n\u3000"), "content: it is empty"),
    "an amendment that is blank": (said(type="amend", content="  "), "content: it is empty"),
    "an id that is a number": (said(id=10**15), "id"),
    "an id with a space": (said(id="a b"), "id"),
    "an id that is empty": (said(id=""), "id"),
    "a session with a space": (said(session_id="a b"), "session_id"),
    "a session that begins with @": (said(session_id="@tasks"), "session_id"),
    "roles that are a word": (said(roles="admin"), "roles"),
    "roles that are numbers": (said(roles=[1]), "roles"),
    "a type that there is not": (said(type="exec"), "type"),
    "a type that is a number": (said(type=1), "type"),
    "a mode that there is not": (said(mode="turbo"), "mode"),
    "force that is a word": (said(force="true"), "force"),
    "a temperature that is a word": (said(temperature="hot"), "temperature"),
    "a newer version": (said(v=999), "newer than this release"),
    "a version that is a word": (said(v="1"), "v"),
    "a time that is none": (said(timestamp="yesterday"), "timestamp"),
    "a time that is a number": (said(timestamp=1700000000), "timestamp"),
    "the year 9999": (said(timestamp="9999-12-31T23:59:59Z"), "year is out of range"),
    "the year 1": (said(timestamp="0001-01-01T00:00:00Z"), "year is out of range"),
    "the year -1": (said(timestamp="-001-01-01T00:00:00Z"), "timestamp"),
    "a deadline that is none": (said(deadline="soon"), "deadline is not a time"),
    "an approval without a decision": (said(type="approval", approval_id="a1"), "decision"),
    "an approval that decides something else": (
        said(type="approval", approval_id="a1", decision="maybe"),
        "decision",
    ),
    "a command without a tool": (said(type="command", id="c1"), "tool"),
    "a command whose arguments are a list": (
        said(type="command", id="c1", tool="list_projects", arguments=[]),
        "arguments",
    ),
}
EVERYTHING = UNREADABLE | MISUSED
