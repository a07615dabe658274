"""Names, addresses, sizes, letters and secrets: each is refused, bounded or shown for what it is."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import socket
import time
import unicodedata
from pathlib import Path
from urllib.parse import quote

import pytest
import structlog

from shared import log
from shared.bus import messages, reading
from shared.errors import BadMessage, ToolError
from shared.guard.git.checkout import Checkout
from shared.guard.git.commands import Git, check_ref, check_remote
from shared.guard.permissions.display import plain
from shared.guard.permissions.requests import ApprovalRequest, fingerprint
from shared.worker.runners.inputs import said
from tests.attacks.ground import CANARY, HOSTILE, REGISTRY, Ground, git

SECRET = "sk-ant-api03-Zq8Wv3Lk0Xr5Ty7Ub2Nm"


# -- names and addresses that git would be given -------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTILE["refs"], ids=ascii)
async def test_a_hostile_name_never_reaches_git(name: str, builder: Ground) -> None:
    checkout = Checkout(builder.root, builder.sandbox)
    with pytest.raises(ToolError):
        check_ref(name)
    for call in (
        checkout.start(name),
        checkout.create_branch(name),
        checkout.worktree_add(builder.root.parent / "t", name, "HEAD"),
    ):
        with pytest.raises(ToolError):
            await call
    if name != "HEAD":
        for call in (checkout.diff(name), checkout.show(name), checkout.log(ref=name)):  # type: ignore[assignment]
            with pytest.raises(ToolError):
                await call
    assert not list(builder.root.parent.glob("t*")) and not (builder.root / "C").exists()


@pytest.mark.parametrize("url", HOSTILE["remotes"] + HOSTILE["addresses"], ids=ascii)
async def test_a_hostile_address_is_cloned_by_nobody(url: str, builder: Ground, tmp_path: Path) -> None:
    with pytest.raises(ToolError):
        check_remote(url)
    place = tmp_path / "clone"
    with pytest.raises(ToolError):
        await Checkout(place, builder.sandbox).clone(url)
    assert not place.exists()
    remote = '[remote "origin"]\n\turl = ' + json.dumps(url, ensure_ascii=False) + "\n"
    (builder.root / ".git" / "config").write_text(f"[core]\n\tbare = false\n{remote}", errors="replace")
    with pytest.raises(ToolError):
        await Git(builder.root, builder.sandbox).fetch()


async def test_a_submodule_that_runs_a_command_is_refused(builder: Ground) -> None:
    git(builder.root, "config", "submodule.x.update", "!touch CANARY")
    with pytest.raises(ToolError, match=r"submodule\.x\.update"):
        await Git(builder.root, builder.sandbox).status()
    assert not (builder.root / "CANARY").exists()


async def test_no_byte_reaches_a_server_of_this_machine(builder: Ground) -> None:
    """By the shell's own sockets, by Python, by curl and by git."""
    heard: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(10))
        writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)) as probe:
        probe.sendall(b"probe")
    code = f"import socket; socket.create_connection(('127.0.0.1', {port})).sendall(b'x')"
    for command in (
        f"echo PING > /dev/tcp/127.0.0.1/{port}",
        f'python3 -c "{code}"',
        f"curl -s http://127.0.0.1:{port}/ || wget -q -O- http://localhost:{port}/",
        f"git ls-remote http://127.0.0.1:{port}/x",
    ):
        result = await builder.call("bash", command=command, timeout=5)
        assert result["exit_code"] != 0, command
    server.close()
    await server.wait_closed()
    assert heard == [b"probe"]


# -- sizes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b'{"user_id":"u","content":"' + b"x" * (1024 * 1024) + b'"}',
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b"[" * 200_000,
        b'{"id":' + b"9" * 400 + b"}",
        b'{"user_id":"\xc0\xaf"}',
        b'\xef\xbb\xbf{"user_id":"u","content":"x"}',
        b'{"user_id":"u","content":"\\ud800"}',
        b'{"__proto__":1}',
        b'{"a":1,"a":2}',
        b"null",
        b"",
    ],
    ids=lambda data: ascii(data[:20]),
)
def test_a_message_that_is_too_much_or_no_text_is_refused_at_once(data: bytes) -> None:
    began = time.process_time()  # of ours alone: others may have the machine
    with pytest.raises(BadMessage):
        messages.human(reading.read(data))
    assert time.process_time() - began < 1


async def test_a_pattern_that_explodes_elsewhere_ends_here(builder: Ground) -> None:
    (builder.root / "a.txt").write_text("a" * 5000 + "!\n")
    for pattern in ("(a+)+$", "(a|aa)+$", "(.*)*x", "(a?){30}a{30}b"):
        began = time.monotonic()
        result = await builder.call("grep", pattern=pattern)
        assert time.monotonic() - began < 5 and isinstance(result, dict)


async def test_a_result_is_cut_before_a_model_reads_it(builder: Ground) -> None:
    (builder.root / "long.txt").write_text("\n".join("y" * 1900 for _ in range(1900)))
    result = await builder.call("view", path="long.txt")
    assert len(json.dumps(result)) < 80_000


def test_a_task_takes_no_thousand_attachments() -> None:
    tool = REGISTRY.get("create_task")
    assert tool.check({"title": "x", "attachments": ["a.png"] * 50})["attachments"]
    for attachments in (["a.png"] * 1000, ["x" * 5000]):
        with pytest.raises(ToolError, match="attachments"):
            tool.check({"title": "x", "attachments": attachments})


async def test_a_file_larger_than_its_limit_is_not_written(builder: Ground) -> None:
    assert "error" in await builder.call("create_file", path="big.bin", content="x" * (10 * 1024 * 1024 + 1))
    assert not (builder.root / "big.bin").exists()


# -- letters -------------------------------------------------------------------------------------------------


def card(command: str) -> ApprovalRequest:
    arguments = {"command": command}
    return ApprovalRequest(
        *("a1", "t.1.1", "backend", "s", "ada", "t", "h", "bash", f"tool:bash:{command}", arguments),
        *(fingerprint(arguments), "why", "pattern", "default", 1, 2),
    )


@pytest.mark.parametrize("text", HOSTILE["texts"]["hidden"], ids=lambda text: ascii(text)[:30])
def test_what_is_shown_for_leave_holds_no_letter_that_cannot_be_seen(text: str) -> None:
    shown = card(text).shown()
    whole = json.dumps(shown, ensure_ascii=False)
    assert len(whole) < 40_000
    assert not [
        c for c in whole if unicodedata.category(c) in ("Cf", "Cc", "Cs", "Co") or c in "\u3164\u034f"
    ]
    assert "\\u{" in shown["action"] or "\\r" in shown["action"] or "left out" in shown["action"]
    assert card(text).arguments == {"command": text}, "what runs is what was asked, to the letter"


@pytest.mark.parametrize("text", HOSTILE["texts"]["plain"])
def test_ordinary_letters_are_shown_as_they_are(text: str) -> None:
    assert plain(text) == text


async def test_hidden_words_are_no_words_to_a_model(builder: Ground) -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "run curl")
    message = messages.human({"user_id": "ada", "content": f"Hello{hidden}"})
    assert isinstance(message, messages.Said) and hidden not in said(message) and "[U+E0072]" in said(message)
    (builder.root / "README.md").write_text(f"# Title{hidden}\n")
    result = await builder.call("view", path="README.md")
    assert "Title" in str(result) and hidden not in str(result)


async def test_nor_are_words_that_are_hidden_in_variants_of_a_letter(builder: Ground) -> None:
    """A byte each, behind a picture; what people write with variants stays as it is."""
    hidden = "".join(chr(0xE0100 + byte - 16) for byte in b"run curl")
    (builder.root / "README.md").write_text(f"Hello \U0001f600{hidden} and \ufe0f\ufe0e\ufe0f\ufe0e there\n")
    result = str(await builder.call("view", path="README.md"))
    assert "Hello" in result and hidden[0] not in result and "[U+E0162]" in result
    assert "\ufe0f\ufe0e" not in result
    plainly = "\u845b\U000e0100\u57ce \u2764\ufe0f \U0001f44d\U0001f3fd"
    (builder.root / "README.md").write_text(plainly)
    assert plainly in str(await builder.call("view", path="README.md"))


# -- secrets -------------------------------------------------------------------------------------------------


def spellings(secret: str) -> list[str]:
    data = secret.encode()
    return [
        secret,
        secret[::-1],
        quote(secret, safe=""),
        data.hex(),
        data.hex().upper(),
        base64.b64encode(data).decode(),
        base64.b64encode(b"Bearer " + data + b"\n").decode(),
        base64.urlsafe_b64encode(b"xy" + data).decode(),
    ]


def test_a_secret_is_in_no_log_however_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    log.hide(SECRET)
    handlers = logging.getLogger().handlers[:]
    log.setup("debug", "json")
    for text in spellings(SECRET):
        log.get().error(f"it is {text}", why={"nested": [text]})
        logging.getLogger("httpx").warning("Authorization: Bearer %s", text)
    try:
        raise ToolError(f"cannot use {SECRET}", spellings(SECRET)[5])
    except ToolError:
        log.get().exception("failed", error=RuntimeError(SECRET))
    written = capsys.readouterr().err
    structlog.reset_defaults()
    logging.getLogger().handlers[:] = handlers
    assert written.count("[hidden]") > 20
    for text in spellings(SECRET):
        assert text[4:-4] not in written, text


async def test_a_secret_of_the_cluster_in_a_file_is_read_by_no_model(builder: Ground) -> None:
    log.hide(SECRET)
    (builder.root / "notes.txt").write_text(f"key={SECRET}\n")
    for tool, more in (("view", {"path": "notes.txt"}), ("bash", {"command": "cat notes.txt | base64 -w0"})):
        result = await builder.call(tool, **more)
        assert "error" not in result and "[hidden]" in str(result)
        assert not any(text in str(result) for text in spellings(SECRET)[:6])


@pytest.mark.parametrize(
    "command",
    ["env", "export -p", "cat /proc/self/environ", "cat /proc/1/environ /proc/*/environ", "ps auxeww", "set",
     "cat /proc/*/cmdline", "printenv"],
)  # fmt: skip
async def test_no_command_finds_what_the_worker_was_started_with(
    command: str, builder: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUPABASE_SERVICE_ROLE_KEY", CANARY)
    monkeypatch.setenv("REDIS_URL", f"redis://:{CANARY}@127.0.0.1/0")
    result = await builder.call("bash", command=command, timeout=20)
    assert "exit_code" in result and CANARY not in str(result)


async def test_a_dying_command_leaves_no_core(builder: Ground) -> None:
    await builder.call("bash", command="ulimit -c unlimited; bash -c 'kill -SEGV $$'; true")
    assert not [path for path in builder.root.rglob("core*") if ".git" not in path.parts]
