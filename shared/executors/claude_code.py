"""Claude Code as the executor of a task, through claude-agent-sdk (the extra `claude-code`).

It runs in our sandbox, with a configuration of its own, none of the person's, and no variable of ours: what it
needs of the provider goes through `outlet`. Every call of a tool passes our hook before it runs, and the hook
fails closed; a command is run outside of it, in a sandbox of its own. Its session is named by us and written down
before it starts, so that whoever takes the task over goes on in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import shutil
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from shared import failpoints, log
from shared.errors import Lasting, ModelError, ModelOverloaded, ModelRefused, PromptDockError
from shared.executors import claude_tools
from shared.executors.base import TaskOutcome, TaskWork, notes
from shared.executors.outlet import Outlet
from shared.executors.pipe import Pipe
from shared.guard.processes import starts
from shared.guard.processes.process import environment
from shared.models.base import Usage
from shared.settings import Settings
from shared.turns.records import ModelRecord, NoteRecord, Records, ResultRecord, SessionRecord

_LEAVE = 8 * 24 * 3600.0  # seconds that a person may take; the gate has its own, shorter bound
_STDOUT = 4000
_FORBIDDEN = (401, 403)


def library() -> Any:
    """The SDK, which is an extra; Lasting where it is not installed."""
    try:
        return importlib.import_module("claude_agent_sdk")
    except ImportError:
        raise Lasting(
            "Claude Code is not installed", "its SDK is an extra", starts.installing("claude-code")
        ) from None


def program(sdk: Any) -> str:
    """Where Claude Code is: the one that came with the SDK, else the system's; Lasting for neither."""
    bundled = Path(sdk.__file__).parent / "_bundled" / "claude"
    found = str(bundled) if bundled.is_file() else shutil.which("claude")
    if not found:
        raise Lasting("Claude Code is not installed", "", "pip install 'promptdock[claude-code]'")
    return found


def access(settings: Settings) -> dict[str, str]:
    """The variables by which Claude Code finds its provider: the key, and the address where one is set."""
    found = {}
    if settings.anthropic_api_key is not None:
        found["ANTHROPIC_API_KEY"] = settings.anthropic_api_key.get_secret_value()
    if settings.anthropic_base_url:
        found["ANTHROPIC_BASE_URL"] = settings.anthropic_base_url
    return found


class ClaudeCode:
    """Carries out one task; made anew for each turn."""

    name = "claude-code"

    async def run(self, work: TaskWork) -> TaskOutcome:
        """From wherever the journal stands to an answer."""
        last = next(
            (r for r in reversed(work.journal.records) if isinstance(r, ModelRecord | NoteRecord)), None
        )
        if isinstance(last, ModelRecord):
            return _outcome(work, last)  # a worker before us had its answer
        if work.tokens is not None:
            raise Lasting(
                f"the task may use {work.tokens} tokens, and Claude Code takes no bound on them",
                "it counts them when it has ended",
                "leave max_tokens_per_run out, or let our own loop do it: PROMPTDOCK_EXECUTOR=loop",
            )
        sdk = await asyncio.to_thread(library)
        async with Outlet(work) as outlet:
            return await _Run(work, sdk, program(sdk), outlet).run()


class _Run:
    """One process of Claude Code, from its start to its result."""

    def __init__(self, work: TaskWork, sdk: Any, executable: str, outlet: Outlet) -> None:
        self._work, self._sdk, self._program, self._outlet = work, sdk, executable, outlet
        self._config = work.scratch / "claude"
        self._running: dict[str, tuple[str, float]] = {}  # commands by call, and when they began

    async def run(self) -> TaskOutcome:
        session, begun = await self._session()
        sdk = self._sdk
        hooks: Any = {
            "PreToolUse": [sdk.HookMatcher(hooks=[self._before], timeout=_LEAVE, on_failure="block")],
            "PostToolUse": [sdk.HookMatcher(hooks=[self._after])],
            "PostToolUseFailure": [sdk.HookMatcher(hooks=[self._after])],
        }
        options = sdk.ClaudeAgentOptions(hooks=hooks, can_use_tool=self._asked, setting_sources=[])
        argv = self._outlet.wrap(
            self._argv(session, begun), self._environment(), [self._program], [self._config]
        )
        pipe = Pipe(argv, self._work.path, environment(), self._work.lock)
        client = sdk.ClaudeSDKClient(options, transport=pipe)
        try:
            await client.connect()
            words = notes(self._work.journal.records)
            if begun and not words:
                words = ["[You were interrupted. Look at what you have done, and go on.]"]
            await client.query(claude_tools.inert(words if begun else [self._work.command, *words]))
            return await self._listen(client)
        except PromptDockError:
            raise
        except Exception as error:  # the SDK wraps what befalls its pipe in errors of many kinds
            why = log.redact(str(error))[:600]
            raise ModelError("Claude Code failed", why, "see the worker's log") from error
        finally:
            with contextlib.suppress(Exception):
                await client.disconnect()
            await pipe.close()

    async def _session(self) -> tuple[str, bool]:
        """The id of the session, and whether there is something of it to go on with."""
        kept = self._work.journal.records.first(SessionRecord)
        if kept is None:
            kept = SessionRecord(id=str(uuid4()), at=_now(), executor=ClaudeCode.name)
            await self._work.journal.step(kept)
        return kept.id, any(self._config.glob(f"projects/*/{kept.id}.jsonl"))

    def _argv(self, session: str, begun: bool) -> list[str]:
        work = self._work
        argv = [self._program, "--output-format", "stream-json", "--input-format", "stream-json", "--verbose"]
        argv += ["--system-prompt", "\n\n".join(work.system), "--model", work.model]
        argv += ["--tools", ",".join(claude_tools.TOOLS), "--permission-mode", "bypassPermissions"]
        argv += ["--permission-prompt-tool", "stdio"]  # so that it may ask the person questions
        argv += ["--setting-sources=", "--strict-mcp-config", "--include-partial-messages"]
        argv += [f"--resume={session}" if begun else f"--session-id={session}"]
        if work.rounds is not None:
            argv += ["--max-turns", str(work.rounds)]
        if work.cost is not None:
            left = work.cost - _used(work.journal.records).cost
            argv += ["--max-budget-usd", f"{max(0.01, left):.4f}"]
        return argv

    def _environment(self) -> dict[str, str]:
        self._config.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The commands that it runs see none of this: their sandbox gives them an environment of their own.
        return {
            **(self._work.environment if failpoints.without("claude-provider") else {}),
            "CLAUDE_CONFIG_DIR": str(self._config),
            "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
            "DISABLE_AUTOUPDATER": "1",
            "SHELL": shutil.which("bash") or "/bin/sh",
            **({"IS_SANDBOX": "1"} if os.geteuid() == 0 else {}),  # it runs nothing as root otherwise
        }

    # -- its calls -------------------------------------------------------------------------------------------

    async def _before(self, given: Any, _id: str | None, _context: Any) -> Any:
        """The gate: permission for one call, and what it is really run with. What cannot be judged is not done."""
        try:
            return await self._judged(given)
        except Exception as error:
            log.get().warning("A call of Claude Code was refused: it cannot be judged", why=repr(error)[:300])
            return _decision("deny", "this call cannot be judged")

    async def _judged(self, given: Any) -> Any:
        name, id = str(given["tool_name"]), str(given["tool_use_id"])
        self._work.live("tool_call", {"tool": name, "arguments": given["tool_input"], "call_id": id})
        if name == claude_tools.QUESTION:
            return {}  # asks for nothing but words, which `_asked` gives
        try:
            call = claude_tools.translate(name, given["tool_input"], self._work)
            why = await self._work.permit(call.tool, call.arguments, f"{self._work.turn_id}.{id}")
            # What was decided is stored before it is acted upon.
            await self._work.journal.step()
        except PromptDockError as error:
            return _decision("deny", str(error))
        if why:
            return _decision("deny", why)
        if call.tool != "bash":
            return _decision("allow", "", call.changed)
        command = call.arguments["command"]
        self._running[id] = (command, time.monotonic())
        changed = {**call.changed, "command": self._outlet.allow(command, call.arguments["timeout"])}
        return _decision("allow", "", changed)

    async def _asked(self, tool: str, given: dict[str, Any], _context: Any) -> Any:
        """The person answers instead of a terminal. Nothing else is decided here: the hook did."""
        if tool != claude_tools.QUESTION:
            return self._sdk.PermissionResultDeny(message=f"{tool} cannot be used here")
        answers = {}
        for question in claude_tools.questions(given):
            if not (text := await self._work.ask(question)):
                told = "Nobody answered in time: decide by yourself, and say what you assumed"
                return self._sdk.PermissionResultDeny(message=told)
            answers[question["asked"]] = text
        return self._sdk.PermissionResultAllow(updated_input={**given, "answers": answers})

    async def _after(self, given: Any, _id: str | None, _context: Any) -> Any:
        """A call has ended; of a command, its exit code is written down."""
        id, failed = str(given["tool_use_id"]), given["hook_event_name"] == "PostToolUseFailure"
        told = given.get("error") if failed else given.get("tool_response")
        shown = {"tool": given["tool_name"], "call_id": id, "content": str(told)[:_STDOUT]}
        self._work.live("tool_result", {**shown, "is_error": failed, "ms": given.get("duration_ms", 0)})
        if id in self._running:
            command, begun = self._running.pop(id)
            await self._work.journal.step(_result(id, command, told, failed, time.monotonic() - begun))
        words = await self._work.joined()
        more = {"hookEventName": given["hook_event_name"], "additionalContext": claude_tools.inert(words)}
        return {"hookSpecificOutput": more} if words else {}

    # -- what it says ----------------------------------------------------------------------------------------

    async def _listen(self, client: Any) -> TaskOutcome:
        async for message in client.receive_response():
            if isinstance(message, self._sdk.StreamEvent):
                self._stream(message.event)
            elif isinstance(message, self._sdk.ResultMessage):
                return await self._ended(message)
        raise ModelError("Claude Code ended without a result", "", "the task can be started again")

    def _stream(self, event: dict[str, Any]) -> None:
        delta = event.get("delta", {}) if event.get("type") == "content_block_delta" else {}
        if text := delta.get("text"):
            self._work.live("chunk", {"content": text})
        elif thought := delta.get("thinking"):
            self._work.live("thinking", {"content": thought})

    async def _ended(self, result: Any) -> TaskOutcome:
        if result.is_error and result.api_error_status in _FORBIDDEN:
            raise ModelRefused(
                "the provider does not take the key", str(result.result)[:300], "promptdock key set"
            )
        if result.is_error and result.subtype == "success":
            raise ModelOverloaded(
                "the provider failed", str(result.result or result.errors)[:300], "try again"
            )
        if result.subtype == "error_during_execution":
            raise ModelError("Claude Code failed", "; ".join(result.errors or [])[:500], "")
        record = _answer(result, self._work.model)
        await self._work.journal.step(record)
        return _outcome(self._work, record)


def _decision(how: str, why: str, changed: dict[str, Any] | None = None) -> dict[str, Any]:
    fields: dict[str, Any] = {"hookEventName": "PreToolUse", "permissionDecision": how}
    if why:
        fields["permissionDecisionReason"] = why[:2000]
    return {"hookSpecificOutput": fields | ({"updatedInput": changed} if changed is not None else {})}


def _result(id: str, command: str, told: Any, failed: bool, seconds: float) -> ResultRecord:
    """A command as our own shell would have written it down."""
    out = told.get("stdout", "") if isinstance(told, dict) else str(told or "")
    code = _exit_code(str(told)) if failed else 0
    content = {"exit_code": code, "stdout": out[:_STDOUT], "ms": int(seconds * 1000)}
    return ResultRecord(
        at=_now(), id=id, tool="bash", arguments={"command": command},
        content=content, error=failed, ms=int(seconds * 1000),
    )  # fmt: skip


def _exit_code(told: str) -> int:
    word, _, rest = told.partition("Exit code ")
    digits = rest.split(maxsplit=1)[0] if rest and not word else ""
    return int(digits) if digits.isdigit() else 1


def _answer(result: Any, model: str) -> ModelRecord:
    """Its answer as a journal record: the same form as of our own loop, so that its usage is booked alike."""
    usage = result.usage or {}
    limits = {"error_max_turns": "a limit of rounds", "error_max_budget_usd": "its budget"}
    text = str(result.result or "")
    if limit := limits.get(result.subtype):
        text = f"{text}\n[It was ended by {limit}.]".strip()
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    taken, made, read, written = (int(usage.get(name) or 0) for name in names)
    return ModelRecord(
        at=_now(),
        content=[{"type": "text", "text": text}],
        stop="refusal" if result.stop_reason == "refusal" else "end_turn",
        model=next(iter(result.model_usage or {}), model),
        demo=False,
        limit=limit or "",
        usage=(taken, made, read, written, float(result.total_cost_usd or 0.0)),
    )


def _used(records: Records) -> Usage:
    return sum((Usage(*answer.usage) for answer in records.answers), Usage())


def _outcome(work: TaskWork, record: ModelRecord) -> TaskOutcome:
    text = "\n".join(block["text"] for block in record.content)
    kind = "refusal" if record.stop == "refusal" else "answer"
    used = _used(work.journal.records)
    return TaskOutcome(text or "Done.", kind, usage=used, model=record.model, limit=record.limit)  # type: ignore[arg-type]


def _now() -> int:
    return time.time_ns() // 1_000_000
