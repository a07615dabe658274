"""An answer that is shown while it comes: every block once, whole, and as it can be copied."""

from __future__ import annotations

from typing import Any

import pytest

from shared.bus.messages import Output, now
from shared.client.text.blocks import Splitter, TextBlock, blocks
from shared.client.text.drawn import draw
from shared.client.text.stream import Stream
from shared.client.types import Event

TEXT = """A paragraph
of two lines.

## Head
- one
- two
  - nested
  ```python
  def f():
      return 1
  ```
1. first
2. second

| a | b |
|---|---|
| 1 | 2 |
~~~
plain

    indented
~~~
The end"""


class Screen:
    """What was written, block by block, and the notes beside it."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.stream = Stream(self._write, self._note)

    def _write(self, written: Any, demo: bool) -> None:
        self.written += [block.text for block in written]

    def _note(self, text: str) -> None:
        self.written.append(f"· {text}")

    def take(self, kind: str, **payload: Any) -> None:
        self.stream.take(Event(kind, payload, "0"))

    def starts(self) -> None:
        self.take("start", turn_id="t", model="claude-sonnet-5-5")

    def ends(self, content: str, status: str = "complete", **fields: Any) -> None:
        base = {"id": "o", "user_id": "ada", "session_id": "s", "timestamp": now(), "answers": ["t"]}
        output = Output.model_validate({**base, "content": content, "status": status, "model": "m", **fields})
        assert self.stream.of(output)
        self.stream.end(output)


@pytest.fixture
def screen() -> Screen:
    return Screen()


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_text_in_any_pieces_falls_into_the_same_blocks_that_make_up_the_text(size: int) -> None:
    splitter, found = Splitter(), []
    for at in range(0, len(TEXT), size):
        found += splitter.add(TEXT[at : at + size])
    found += splitter.end()
    assert found == blocks(TEXT)
    assert "".join(block.raw for block in found) == TEXT
    assert [block.kind for block in found] == [
        "text", "heading", "item", "item", "item", "code", "item", "item", "text", "code", "text"
    ]  # fmt: skip


def test_a_block_is_finished_as_soon_as_it_is_clear_that_it_ends() -> None:
    splitter = Splitter()
    assert splitter.add("One.\n") == []
    assert [block.text for block in splitter.add("\n- a\n")] == ["One."]
    assert [block.text for block in splitter.add("- b\n")] == ["- a"]
    assert [block.text for block in splitter.add("```\nx = 1\n")] == ["- b"]
    assert splitter.rest == "```\nx = 1\n"
    assert [block.text for block in splitter.add("```\n")] == ["x = 1"]
    assert [block.text for block in splitter.add("# Head\n")] == ["# Head"]


def test_code_is_drawn_as_it_can_be_copied_however_narrow_the_terminal_is() -> None:
    code = 'def f():\n    return "a line that is much longer than this terminal is wide, and stays one"'
    drawn = draw(blocks(f"See:\n\n```python\n{code}\n```\n"), 40)
    bare = "".join(_bare(drawn))
    assert code in bare
    assert all(line == line.rstrip() for line in bare.splitlines())


def test_prose_is_wrapped_between_words_and_nested_items_are_indented() -> None:
    drawn = _bare(draw(blocks("- one\n  - " + "word " * 20), 40))
    assert all(len(line) <= 40 for line in drawn.splitlines())
    assert " • one\n   • word word" in drawn
    assert "wo\n" not in drawn


def test_what_a_model_wrote_in_a_block_cannot_command_the_terminal() -> None:
    drawn = draw(blocks("a\x1b]0;owned\x07b\n\n```sh\x1b[2J\nls \x1b[2J\x9b31m\n```\n"), 80)
    for bad in ("\x1b]", "\x1b[2J", "\x9b", "\x07"):
        assert bad not in drawn


def _bare(text: str) -> str:
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_an_answer_is_shown_as_it_comes_and_not_again_when_it_is_whole(screen: Screen) -> None:
    screen.starts()
    screen.take("chunk", content="One.\n\nTw")
    assert screen.written == ["One."]
    assert screen.stream.open.strip() == "Tw"
    screen.take("chunk", content="o.")
    screen.ends("One.\n\nTwo.")
    assert screen.written == ["One.", "Two."]


def test_what_is_said_before_a_tool_call_stays(screen: Screen) -> None:
    screen.starts()
    screen.take("chunk", content="I ask the Planner.")
    screen.take("tool_call", tool="consult_planner", arguments={})
    assert screen.written == ["I ask the Planner."]
    screen.take("chunk", content="It says yes.")
    screen.ends("It says yes.")
    assert screen.written == ["I ask the Planner.", "It says yes."]


@pytest.mark.parametrize("anew", ["start", "waiting"])
def test_an_answer_that_is_begun_anew_repeats_nothing_on_the_screen(screen: Screen, anew: str) -> None:
    screen.starts()
    screen.take("chunk", content="One.\n\nTwo.\n\nThr")
    screen.starts() if anew == "start" else screen.take("waiting", content="…")
    screen.take("chunk", content="One.\n\nTw")
    assert screen.stream.open == ""
    screen.take("chunk", content="o.\n\nThree.")
    screen.ends("One.\n\nTwo.\n\nThree.")
    assert screen.written == ["One.", "Two.", "Three."]


def test_where_another_worker_says_it_differently_only_the_difference_is_shown_and_noted(
    screen: Screen,
) -> None:
    screen.starts()
    screen.take("chunk", content="One.\n\nTwo.\n\n")
    screen.starts()
    screen.take("chunk", content="One.\n\n2.\n\nThree.")
    screen.ends("One.\n\n2.\n\nThree.")
    assert screen.written == ["One.", "Two.", "· the answer was begun anew", "2.", "Three."]


def test_a_question_below_what_was_said_is_added_to_it(screen: Screen) -> None:
    screen.starts()
    screen.take("chunk", content="There are two ways.")
    screen.take("tool_call", tool="escalate_to_human", arguments={})
    screen.ends("There are two ways.\nWhich one?", "awaiting_input", question="Which one?")
    assert screen.written == ["There are two ways.", "Which one?"]


def test_an_answer_that_was_not_streamed_is_shown_whole_and_one_that_failed_as_far_as_it_came(
    screen: Screen,
) -> None:
    screen.starts()
    screen.ends("Done. Actions taken: bash", demo=True)
    assert screen.written == ["[demo] Done. Actions taken: bash"]
    screen.written.clear()
    screen.take("start", turn_id="t", model="m")
    screen.take("chunk", content="Half an ans")
    screen.ends("The connection was lost", "error")
    assert screen.written == ["Half an ans"]


def test_blocks_are_drawn_apart_as_the_source_has_them() -> None:
    drawn = _bare(draw(blocks("One\n\nTwo\n- a\n- b\n\nThree"), 40))
    assert drawn == "One\n\nTwo\n • a\n • b\n\nThree\n"
    assert isinstance(blocks("x")[0], TextBlock)


def test_what_a_worker_that_died_did_not_tell_to_its_end_is_completed_and_not_repeated(
    screen: Screen,
) -> None:
    screen.starts()
    screen.take("chunk", content="One.\n\nTw", part=1)
    again = {"turn_id": "t", "model": "m", "again": True, "from": 2, "said": ["One.\n\nTwo."]}
    screen.take("start", **again)
    assert screen.written == ["One.", "Two."]
    screen.take("tool_call", tool="bash", arguments={})
    screen.take("chunk", content="Three.", part=2)
    screen.take("tool_call", tool="bash", arguments={})
    screen.take("start", **{**again, "from": 3, "said": ["One.\n\nTwo.", "Three."]})
    screen.take("chunk", content="Four.", part=3)
    screen.ends("Four.")
    assert screen.written == ["One.", "Two.", "Three.", "Four."]


def test_who_comes_in_the_middle_of_an_answer_is_shown_none_of_it_before_it_is_whole(screen: Screen) -> None:
    screen.take("chunk", content="the end of a sentence.\n\nAnother.\n\n")
    assert screen.written == []
    assert screen.stream.open == ""
