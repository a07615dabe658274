"""Keys that nobody configured, in what people and files are shown: logs, the audit log, outputs, listings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from shared.bus.messages import Output
from shared.client.views.dead_letters import Dead, whole
from shared.guard.permissions.requests import ApprovalRequest
from shared.redaction import StreamRedactor
from shared.shapes import SHAPES
from shared.turns.records import CheckRecord
from tests.attacks.ground import Ground
from tests.support.guards import guarded
from tests.support.secrets import KEY, SECRETS

TOKEN = SECRETS["a token of GitHub"][0][0]
PASTED = f"push with {TOKEN}, and this is my key:\n{KEY}\n"
ROOT = Path(__file__).parents[2]
LOGS = """
import logging, sys
from shared import log
log.setup(style=sys.argv[1])
text = sys.stdin.read()
log.get().warning(text, said=text, many=[text, {"in": text}])
logging.getLogger("library").error("it said %s", text)
try:
    raise ValueError(text)
except ValueError:
    log.get().exception("failed")
"""


def told(text: str) -> list[str]:
    """What of it can be read there."""
    parts = {TOKEN, *KEY.splitlines()[1:-1]}
    return [part for part in parts if part in text]


@guarded("secret-shapes")
@pytest.mark.parametrize("style", ["console", "json"])
def test_no_log_tells_what_has_the_shape_of_a_secret(style: str) -> None:
    done = subprocess.run(
        *([sys.executable, "-c", LOGS, style],), input=PASTED, text=True, capture_output=True, cwd=ROOT, timeout=60
    )  # fmt: skip
    assert done.returncode == 0 and "push with" in done.stderr
    assert not told(done.stderr)


@guarded("secret-shapes")
async def test_the_audit_log_names_no_key_that_a_command_holds(builder: Ground) -> None:
    await builder.call("bash", command=f"curl -H 'Authorization: Bearer {TOKEN}' https://a.invalid")
    await builder.call("create_file", path=f"{TOKEN}.txt", content="x")
    checks = builder.turn.records.of(CheckRecord)
    assert len(checks) == 2 and all("bash" in c.action or "file" in c.action for c in checks)
    assert not told(json.dumps([check.fields() for check in checks]))


@guarded("secret-shapes")
def test_a_question_for_leave_shows_no_key() -> None:
    arguments = {"command": f"echo {TOKEN}", "stdin": KEY, "list": [{"deep": TOKEN}]}
    card = ApprovalRequest(
        *("id", "call", "backend", "s", "ada", "turn", "home", "bash", f"tool:bash:echo {TOKEN}"),
        *(arguments, "hash", f"it names {TOKEN}", f"tool:bash:echo {TOKEN}", "", 0, 1),
    )
    shown = Output(
        user_id="ada", content=f"asks: {TOKEN}", status="awaiting_approval", id="o", session_id="s",
        approval=card.shown(), options=[TOKEN], result={"content": PASTED}, task={"error": PASTED},
    )  # fmt: skip
    for text in (shown.text("chatter-output"), card.row().model_dump_json()):
        assert not told(text)


@guarded("secret-shapes")
def test_dead_letters_are_listed_without_the_key_that_somebody_pasted() -> None:
    said = json.dumps({"type": "message", "content": "x" * 150 + PASTED, "user_id": 7}).encode()
    for data in (said, said[:-1], json.dumps([PASTED]).encode()):
        letter = Dead("chatter/1-0", "chatter", "m", "s", "human-input", f"{TOKEN} was said", data)
        assert not told(json.dumps([letter.card(), whole(letter)]))
        assert TOKEN[:12] not in json.dumps(letter.card())


@guarded("secret-shapes")
@pytest.mark.parametrize("size", [1, 7])
def test_live_text_keeps_back_what_begins_like_a_key_until_it_is_known(size: int) -> None:
    shown = StreamRedactor()
    pieces = [shown.add(PASTED[at : at + size]) for at in range(0, len(PASTED), size)]
    text = "".join([*pieces, shown.end()])
    assert text.startswith("push with ") and not told(text)


@guarded("secret-shapes")
@pytest.mark.parametrize("what", [shape.what for shape in SHAPES])
def test_no_shape_of_the_list_gets_into_an_output(what: str) -> None:
    for text, secret in SECRETS[what]:
        said = Output(user_id="ada", content=f"it is {text}", status="complete", id="o", session_id="s")
        assert secret not in said.text("chatter-output").replace("\\n", "\n")


async def test_what_a_model_edits_is_told_to_it_as_it_is(builder: Ground) -> None:
    """A test's made-up key could not be found again by a model that reads another text."""
    (builder.root / "k.py").write_text(f'KEY = "{TOKEN}"\n')
    assert TOKEN in str(await builder.call("view", path="k.py"))
    changed = await builder.call("str_replace", path="k.py", old_str=TOKEN, new_str="none")
    assert "error" not in changed, changed
