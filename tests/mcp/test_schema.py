"""The schema of somebody else's tool: shown to models and checked by, whatever it holds, in bounded time."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest

from shared.errors import ToolError
from shared.mcp import schema
from shared.mcp.schema import Takes, Unusable

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def test_arguments_are_checked_as_the_server_says() -> None:
    arguments = Takes.of(TEXT)
    assert arguments.check("t", {"text": "a"}) == {"text": "a"}
    with pytest.raises(ToolError, match="'text' is a required property"):
        arguments.check("t", {})
    with pytest.raises(ToolError, match="text: 3 is not of type 'string'"):
        arguments.check("t", {"text": 3})
    with pytest.raises(ToolError, match="they are no object"):
        arguments.check("t", ["text"])


def test_references_are_followed_within_the_schema() -> None:
    given = {
        "type": "object",
        "properties": {"where": {"$ref": "#/$defs/place"}},
        "$defs": {"place": {"type": "object", "required": ["city"]}},
    }
    with pytest.raises(ToolError, match="where: 'city' is a required property"):
        Takes.of(given).check("t", {"where": {}})


def test_what_providers_refuse_at_the_top_is_not_shown_to_them_and_checked_all_the_same() -> None:
    arguments = Takes.of({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]})
    assert arguments.schema == {"type": "object", "properties": {}}
    with pytest.raises(ToolError, match="not valid under any"):
        arguments.check("t", {"c": 1})


def _bomb() -> dict[str, Any]:
    names = "abcdefghijklmnop"
    defs = {one: {"allOf": [{"$ref": f"#/$defs/{two}"}] * 8} for one, two in itertools.pairwise(names)}
    return {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/a"}},
        "$defs": {**defs, "p": {"type": "string"}},
    }


@pytest.mark.parametrize(
    "given",
    [
        _bomb(),
        {"type": "object", "properties": {"x": {"$ref": "#"}}, "required": ["x"]},
        {"type": "object", "properties": {"x": {"pattern": "^(a+)+$"}}},
        {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:1/x"}}},
        {"type": "object", "properties": {"x": {"$ref": "#/nowhere/at/all"}}},
    ],
    ids=["bomb", "itself", "pattern", "elsewhere", "nowhere"],
)
def test_checking_by_a_hostile_schema_takes_no_time_and_leads_nowhere(given: dict[str, Any]) -> None:
    began = time.process_time()
    assert Takes.of(given).check("t", {"x": "a" * 60 + "!"})
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("x", "no object"),
        ({"type": "array"}, "no object"),
        ({"properties": {"a": {"type": "bogus"}}}, "not valid"),
        ({"properties": {"a b": {}}}, "is called 'a b'"),
        ({"description": "x" * 20_000}, "more than 16 KiB"),
    ],
)
def test_a_schema_that_would_spoil_a_whole_request_is_not_used(given: Any, why: str) -> None:
    with pytest.raises(Unusable, match=why):
        Takes.of(given)


def test_an_answer_is_compared_with_what_was_said_of_it() -> None:
    says = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert schema.answered(says, {"n": 1}) == ""
    assert schema.answered(says, {"n": "one"}) == "n: 'one' is not of type 'integer'"
