"""The gate: whether a call may run, and the note of what was decided, whatever it was.

Rules decide (deny, allow, ask); what they ask for, a person decides, and only this turn waits. Each decision
is a record of the turn's journal, from which the audit log is written: nothing of it can be lost, and no call
waits for a Store.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from shared import failpoints, log
from shared.errors import PromptDockError, StoreUnavailable, ToolError
from shared.guard.permissions import about, bound, grants, marks, safeguards
from shared.guard.permissions.about import About
from shared.guard.permissions.policy import SHELLS, Policy, Ruling, literal
from shared.guard.permissions.requests import ApprovalRequest, Decided, fingerprint, storable
from shared.guard.permissions.touching import TouchKind, in_words, spelled
from shared.guard.sandbox.sandbox import Sandbox
from shared.loop import Call, PublishEvent, Verdict
from shared.loop.final import split
from shared.store.base import Store
from shared.store.row import derived
from shared.tools import catalog
from shared.tools.context import Context
from shared.tools.registry import BoundCall, Registry, Tool
from shared.turns.records import AskRecord, CheckRecord, Records, WaitsRecord
from shared.turns.turn import Turn
from shared.turns.waiting import wait_for
from shared.worker import incidents
from shared.worker.permissions.approver import Approver
from shared.worker.permissions.authority import Action, Authority
from shared.worker.permissions.service import AUDITED, ApprovalService, decided_record

FactsReader = Callable[[], Awaitable[dict[str, str]]]
_PATHS = frozenset({"files", "coding", "repository"})  # categories whose detail is a path
_ANEW = 5  # questions about one call that changes each time
NOBODY = "a person must allow this, and there is nobody who could be asked"


@dataclass(frozen=True)
class _PendingCall:
    """A call that a person is asked about, with what it takes to put it into words."""

    call: Call
    bound: BoundCall
    context: Context | None


@dataclass
class PermissionGate:
    """The gate of one turn."""

    store: Store
    sandbox: Sandbox
    approvals: ApprovalService
    authority: Authority
    agent: str
    policy: Policy
    minutes: float
    turn: Turn
    asked: Approver
    live: PublishEvent
    roots: Collection[str] = ()
    registry: Registry = field(default_factory=catalog.registry)
    paused: Callable[[bool], None] = lambda _waits: None  # told when the turn begins and ends to wait
    fresh: set[str] = field(default_factory=set)  # calls that waited for permission until now: they never ran
    facts: dict[str, dict[str, str]] = field(default_factory=dict)  # of each call that a person allowed

    def __post_init__(self) -> None:
        self._touched: dict[str, tuple[str, ...]] = {}  # what a call touches, by its key
        self._noted = {record.call for record in self.turn.records.of(CheckRecord)}

    async def permission(
        self, call: Call, bound: BoundCall | ToolError, context: Context | None = None
    ) -> Verdict:
        """Whether the call may run; with its `context`, a yes holds only for what it was shown to be about."""
        if context is not None:  # the person may have gone to another project within the turn
            self.asked = replace(self.asked, project=context.project_id)
        if isinstance(bound, ToolError):
            return Verdict(False, str(bound))
        tool = bound.tool
        try:
            detail, kinds = bound.detail, tool.kinds(bound.arguments)
        except Exception as error:  # of a tool's own function: what cannot be named is not allowed
            log.get().exception("A tool's action cannot be named", tool=tool.name)
            return self._said(call, f"tool:{tool.name}:", Ruling("deny", f"{type(error).__name__}"), tool)
        action = f"tool:{tool.name}:{detail}"
        self._touched[call.key] = spelled(kinds, tool.reads_only)
        facts, wanted = self._facts(bound, context), _PendingCall(call, bound, context)
        if kept := self.turn.records.asks(call.key):
            return await self._ask(wanted, ApprovalRequest(**kept[-1].card), facts, again=True)
        details = self._spellings(tool, detail)
        ruling = self.policy.decide(tool.name, tool.category, details, self._touched[call.key])
        doubt = self._doubt(tool, detail, kinds)
        careful = self._careful(tool, detail, kinds, ruling, doubt)
        ruling = await self.authority.bounded(
            self.policy,
            self.registry,
            self.asked.maker,
            Action(tool, bound.arguments, details, kinds),
            careful,
        )
        if ruling.vote != "ask":
            return self._said(call, action, ruling, tool)
        if self.asked.consents:
            # Which folders are open is the person's alone to say: that is nothing that would be asked of them.
            how = "allow" if "root" in kinds else "ask_approved"
            self._note(call, action, how, tool, ruling, self.asked.user_id, by="command")
            return Verdict(True)
        exact = bool(doubt or ruling is not careful) and not failpoints.without("standing-literal")
        if grant := await self._granted(tool, details, exact, facts):
            self._note(
                call, action, "ask_approved", tool, ruling, str(grant.get("by", "")), grant=grant["id"]
            )
            return Verdict(True)
        nobody = not (self.asked.user_id or self.approvals.approvers)
        if nobody and not failpoints.without("nobody-to-ask"):
            return self._said(call, action, Ruling("deny", NOBODY, ruling.rule), tool)
        try:
            shown = await facts()
        except PromptDockError as error:
            return self._said(call, action, Ruling("deny", str(error)), tool)
        why = marks.beside(ruling.why, self.turn.records)
        card = await self._card(wanted, action, why, shown)
        return await self._ask(wanted, card, facts, again=False)

    def _facts(self, bound: BoundCall, context: Context | None) -> FactsReader:
        """What the call depends on beside its arguments, as it is when this is awaited."""

        async def now() -> dict[str, str]:
            binds = bound.tool.binds
            if binds is None or context is None or failpoints.without("bound-yes"):
                return {}
            return await binds(context, **bound.arguments)

        return now

    def _spellings(self, tool: Tool, detail: str) -> list[str]:
        """The detail as it is written, and where it is a path, as it is without detours."""
        if tool.name in SHELLS or tool.category not in _PATHS or not detail:
            return [detail]
        plain = posixpath.normpath(detail)
        head, _, rest = plain.partition("/")
        return list(dict.fromkeys([detail, plain, *([rest] if rest and head in self.roots else [])]))

    def _careful(
        self, tool: Tool, detail: str, kinds: tuple[TouchKind, ...], ruling: Ruling, doubt: str
    ) -> Ruling:
        """The ruling with what holds whatever the rules say, and why a person is asked in words."""
        if ruling.vote != "deny" and (why := safeguards.never(tool.name, detail)):
            return Ruling("deny", why, ruling.rule)
        if ruling.vote == "allow":
            return Ruling("ask", doubt, ruling.rule) if doubt else ruling
        if ruling.vote == "ask":
            itself = doubt.startswith("it ")
            does = doubt.removeprefix("it ") if itself else in_words(kinds)
            why = f"{tool.name} {does}: {ruling.why}" if does else ruling.why
            return Ruling("ask", why if itself or not doubt else f"{why}; {doubt}", ruling.rule)
        return ruling

    def _doubt(self, tool: Tool, detail: str, kinds: tuple[TouchKind, ...]) -> str:
        """Why this is asked for whatever the rules and the standing permissions allow; "" where it is not."""
        if self.policy.unguarded:
            return ""
        if grants.needs_each_time(tool.name, self.sandbox.mode):
            return "there is no sandbox here: each command is asked for"
        if grants.needs_naming(tool.name, self.sandbox.mode):
            return (
                "Landlock does not hold the modes of files nor .git in a checkout: each command is asked for"
            )
        if why := safeguards.shows_secret(tool.name, detail, kinds):
            return why
        if tool.name in SHELLS or tool.name in safeguards.WRITERS:
            return safeguards.writes_settings(tool.name, detail)
        if safeguards.lasting(kinds) and (source := marks.describe(self.turn.records)):
            return f"it {in_words(kinds)}, and {source}"
        return ""

    async def _granted(
        self, tool: Tool, details: list[str], exact: bool, facts: FactsReader
    ) -> dict[str, Any] | None:
        """The standing permission that covers a call, if people gave one."""
        if grants.needs_each_time(tool.name, self.sandbox.mode):
            return None
        try:
            found = await grants.read(self.store)
        except StoreUnavailable as error:
            log.get().warning("Standing permissions cannot be read: a person is asked", why=str(error))
            return None
        person = self.asked.user_id if self.asked.alone() else ""
        here = grants.CallOrigin(self.asked.session, self.agent, self.asked.project, person)
        given = grants.applying(found, here)
        try:
            exactly = literal(f"tool:{tool.name}:{details[0]}")
            depends = any(grant.get("bound") and grant.get("pattern") == exactly for grant in given)
            now = await facts() if depends else {}
        except PromptDockError:
            now = {}  # what cannot be looked at is none of those that were bound to something
        return grants.covers(given, tool.name, tool.category, details, exact, now)

    # -- asking ----------------------------------------------------------------------------------------------

    async def _card(
        self, wanted: _PendingCall, action: str, why: str, facts: dict[str, str]
    ) -> ApprovalRequest:
        call, tool = wanted.call, wanted.bound.tool
        from shared.tools import describe

        does, *more = await describe.call(wanted.context, tool, wanted.bound.arguments, facts)
        now = await self.approvals.now()
        asked = len(self.turn.records.asks(call.key))
        card = ApprovalRequest(
            id=derived("approval", self.agent, call.key, *([asked] if asked else [])).hex[:16],
            call=call.key,
            agent=self.agent,
            session=self.asked.session,
            user_id=self.asked.user_id,
            turn=self.turn.id,
            home=self.turn.session,
            tool=tool.name,
            action=action,
            arguments=call.arguments,
            arguments_hash=fingerprint(call.arguments),
            why=why,
            pattern=literal(action),
            project=self.asked.project,
            at=now,
            expires_at=now + int(self.minutes * 60_000),
            in_turn=self.asked.in_turn,
            bound=facts,
            queue=self.turn.queue.agent,
        )
        each_time = grants.needs_each_time(tool.name, self.sandbox.mode)
        told = About(
            *(does, tuple(more), _reason(self.turn.records, call.id), _task(wanted.context)),
            always=about.always(card, each_time),
        )
        return replace(card, about=told.kept())

    async def _ask(
        self, wanted: _PendingCall, card: ApprovalRequest, facts: FactsReader, again: bool
    ) -> Verdict:
        """Ask; and ask anew where what the yes was for had changed until it came."""
        call, tool = wanted.call, wanted.bound.tool
        # It may have been run already: then what it changed is no reason to ask, and whoever runs it again looks.
        begun = call.again and self._decided(card) is not None
        settled = begun and tool.effect == "once" and not (tool.probes or tool.reads(call.arguments))
        for _ in range(_ANEW):
            same = card.arguments_hash == fingerprint(call.arguments)
            if not (same or failpoints.without("exact-arguments")):
                return self._said(
                    call, card.action, Ruling("deny", "permission was asked for other arguments"), tool
                )
            decision = self._decided(card) or await self._wait(call, card, again, begun)
            try:
                now = await facts() if decision.allows and not settled else card.bound
            except PromptDockError as error:
                return self._said(call, card.action, Ruling("deny", str(error)), tool)
            changed = bound.changed(card.bound, now)
            if not changed:
                self.facts[call.key] = now
                ruling = Ruling("ask", card.why)
                self._note(
                    call, card.action, AUDITED[decision.how], tool, ruling, decision.by, how=decision.how
                )
                return _verdict(decision, self.minutes)
            log.get().info("What was allowed has changed: it is asked for again", tool=tool.name)
            why = f"it was allowed by {decision.by}, but has changed since: {changed}"
            card, again = await self._card(wanted, card.action, why, now), False
        return self._said(call, card.action, Ruling("deny", "it changes faster than it can be allowed"), tool)

    async def _wait(self, call: Call, card: ApprovalRequest, again: bool, begun: bool) -> Decided:
        # Also when it waits again: a turn that waits gets on, whoever of its workers dies.
        await self.turn.step(
            WaitsRecord(at=card.at, call=call.key)
            if again
            else AskRecord(at=card.at, call=call.key, card=asdict(card))
        )
        self.paused(True)
        try:
            decision = await self._await(card)
        finally:
            self.paused(False)
        await self.turn.step(decided_record(card, decision))
        if not begun:
            self.fresh.add(call.key)
        return decision

    def _decided(self, card: ApprovalRequest) -> Decided | None:
        """What the journal says was decided."""
        found = self.turn.records.decision(card.call, card.id)
        return Decided(found.how, found.by, found.reason) if found else None

    async def _await(self, card: ApprovalRequest) -> Decided:
        approvals = self.approvals
        if decision := await approvals.approvals.decision(card.id):
            return decision
        await approvals.put(card)
        self.live("approval", card.shown())
        log.get().info("Waiting for permission", tool=card.tool, approval=card.id)
        until = time.monotonic() + (card.expires_at - self.turn.now()) / 1000
        decision = await wait_for(self.turn, lambda: approvals.approvals.decision(card.id), until)
        return decision or await approvals.decide(card, Decided("expired", at=card.expires_at))

    # -- notes -----------------------------------------------------------------------------------------------

    def _said(self, call: Call, action: str, ruling: Ruling, tool: Tool) -> Verdict:
        allowed = ruling.vote == "allow"
        self._note(call, action, "allow" if allowed else "deny", tool, ruling)
        return Verdict(allowed, "" if allowed else ruling.why)

    def personal(self, call: Call, bound: BoundCall) -> Verdict:
        """What a person alone may call, called by a person."""
        tool, action = bound.tool, f"tool:{bound.tool.name}:{bound.detail}"
        self._note(
            call, action, "ask_approved", tool, Ruling("ask", "for a person alone"), self.asked.user_id
        )
        return Verdict(True)

    def allowed_by(self, call: Call) -> str:
        """The person who allowed a call that needed permission, now or for good."""
        found = self.turn.records.check_of(call.key)
        return found.person if found and found.decision == "ask_approved" else ""

    def refuse(self, call: Call, why: str) -> Verdict:
        """Deny what is no tool of this agent, or cannot be done as things are."""
        if call.key not in self._noted:
            incidents.not_its_own(self.agent, call, why)
        self._keep(call, f"tool:{call.tool}:", "deny", "", {"call": call.key, "why": why})
        return Verdict(False, why)

    def _note(
        self,
        call: Call,
        action: str,
        decision: str,
        tool: Tool,
        ruling: Ruling,
        person: str = "",
        **more: str,
    ) -> None:
        detail = {"category": tool.category, "call": call.key, "why": ruling.why, "rule": ruling.rule[:200]}
        if call.key not in self._noted:
            incidents.decided(self.agent, call, decision, ruling.why, self.policy.name, person)
        detail["touches"] = " ".join(self._touched.get(call.key, ()))
        self._keep(call, action, decision, person, detail | more)

    def _keep(self, call: Call, action: str, decision: str, person: str, detail: dict[str, str]) -> None:
        if call.key in self._noted:
            return  # somebody before us wrote it down
        if failpoints.without("audit-log"):
            return
        self._noted.add(call.key)
        self.turn.keep(
            CheckRecord(
                at=time.time_ns() // 1_000_000,
                call=call.key,
                action=storable(action)[:8000],
                decision=decision,
                person=person,
                profile=self.policy.name,
                detail={name: storable(text) for name, text in detail.items() if text},
            )
        )


def _reason(records: Records, id: str) -> str:
    """What the model said in the answer that makes this call."""
    for answer in reversed(records.answers):
        if any(block.get("id") == id for block in answer.calls):
            return " ".join(split(answer.content)[0].split())
    return ""


def _task(context: Context | None) -> str:
    row = context.task if context else None
    return f"{row.slug} ({row.title})" if row is not None else ""


def _verdict(decision: Decided, minutes: float) -> Verdict:
    if decision.allows:
        return Verdict(True)
    if decision.how == "expired":
        return Verdict(
            False, f"nobody answered within {minutes:g} minutes: the request for permission has expired"
        )
    if decision.how == "withdrawn":
        return Verdict(False, "the request for permission was withdrawn")
    return Verdict(False, f"{decision.by} denied it" + (f": {decision.reason}" if decision.reason else ""))
