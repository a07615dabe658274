"""A question to a person about one call: put, answered, or withdrawn, by whichever worker.

The turn that asks waits for the answer in Redis; whoever takes the answer in wakes it up.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from shared import failpoints, people
from shared.bus import decisions, messages
from shared.bus.keys import CHATTER, CHATTER_OUTPUT
from shared.errors import StoreUnavailable, UsageError
from shared.guard.permissions import about, grants
from shared.guard.permissions.requests import ApprovalRequest, Approvals, Decided, How, storable
from shared.store.base import Store
from shared.turns.outbox import Outbox
from shared.turns.records import CheckRecord, DecidedRecord, Records
from shared.turns.turn import Turn
from shared.worker.connection import Connection

AUDITED: dict[How, str] = {
    "allow_once": "ask_approved",
    "always": "ask_approved",
    "deny": "ask_denied",
    "expired": "expired",
    "withdrawn": "expired",
}
GONE = "There is no such request for permission. It may have ended already."


@dataclass(frozen=True)
class Settled:
    """What became of an answer. `quiet`: the turn that asked closes the message with its own output."""

    ok: bool
    text: str
    quiet: bool = False


class ApprovalService:
    """The questions of a cluster, on their way to people and back."""

    def __init__(self, connection: Connection, store: Store, approvers: frozenset[str], demo: bool) -> None:
        bus, names = connection.bus, connection.names
        self._bus, self._names, self._store, self._queue = bus, names, store, connection.queue
        self.approvers = approvers  # roles that may answer what others are asked
        self._demo = demo
        self.approvals = Approvals(bus, names)
        self._outbox = Outbox(bus, names, store, CHATTER, "")

    async def put(self, card: ApprovalRequest) -> None:
        """Show a question; made again after a crash, it is shown under the same id."""
        await self.approvals.open(card)
        if card.session:
            await self._bus.command("HSET", self.approvals.open_in(card.session), card.id, card.expires_at)
            await self._bus.command("PEXPIREAT", self.approvals.open_in(card.session), card.expires_at)
        if not await self.approvals.marked(card.id, "shown"):
            await self._outbox.put([card.row()])
            channel = self._names.channel(CHATTER_OUTPUT)
            output = await self._queue(CHATTER).placed(self._output(card))
            await self._queue(CHATTER).announce(channel, output.text(channel))
            await self.approvals.first(card.id, "shown")

    def _output(self, card: ApprovalRequest) -> messages.Output:
        shown = card.shown()
        how = "yes, always or no" if "always" in card.options else "yes or no"
        text = "\n".join([*about.lines(card), f"Answer {how}; or: {about.command(card)}"])
        return messages.Output(
            user_id=card.user_id,
            content=text,
            status="awaiting_approval",
            id=f"{card.turn}.ask.{card.id}",
            session_id=card.session or messages.default_session(card.user_id),
            in_reply_to=card.turn if card.in_turn else None,
            options=list(shown["options"]),
            approval=shown,
            demo=self._demo or None,
        )

    async def settle(self, answer: messages.ApprovalMessage) -> Settled:
        """Take a person's answer in; the first one counts, and each later one is told of it."""
        card = await self.approvals.find(answer.approval_id)
        if card is None:
            return Settled(False, GONE)
        if not self._may(card, answer):
            return Settled(
                False, f"{answer.user_id} may not answer this: it is the asker's, or an approver's"
            )
        if answer.arguments_hash and answer.arguments_hash != card.arguments_hash:
            return Settled(False, "The answer is for other arguments than those that are asked for")
        now = await self.now()
        in_time = now < card.expires_at or failpoints.without("expiry")
        how: How = answer.decision if in_time else "expired"
        pattern, scope = "", ""
        if how == "always":
            try:
                pattern, scope = grants.check(card, answer.pattern or "", answer.scope or "")
            except UsageError as error:
                return Settled(False, str(error))
        wanted = Decided(how, at=now)
        if how != "expired":
            wanted = Decided(
                *(how, answer.user_id, (answer.reason or "")[:500], pattern, scope, answer.id or "", now),
                roles=answer.roles,
            )
        decision = await self.decide(card, wanted)
        if not answer.id or decision.message != answer.id:
            told = decision.told(card.user_id)
            return Settled(decision.how == answer.decision, f"Nothing was changed: it was {told} before.")
        whose = f" It holds for {card.user_id} alone." if decision.how == "always" else ""
        return Settled(True, f"{card.tool}: {decision.told(card.user_id)}.{whose}", quiet=card.in_turn)

    async def word(self, said: messages.Said) -> Settled:
        """A plain yes or no: for the question that it replies to, else the one that is open."""
        read = decisions.decision(said.content)
        flat = await self._bus.command("HKEYS", self.approvals.open_in(said.session))
        open_now = [name.decode() for name in flat]
        _, _, named = (said.in_reply_to or "").rpartition(".ask.")
        if (short := decisions.named(said.content)) or named not in open_now:
            fitting = [id for id in open_now if id.startswith(short)]
            named = fitting[0] if len(fitting) == 1 else ""
        if read is None or not named:
            ids = [id[: about.SHORT] for id in open_now]
            told = (
                f"Several requests for permission are open ({', '.join(ids)}): name one, e.g. yes {ids[0]}"
                if ids
                else ""
            )
            return Settled(False, told if len(open_now) > 1 else GONE)
        how, reason = read
        return await self.settle(
            messages.ApprovalMessage.model_validate(
                {
                    "type": "approval",
                    "id": said.id,
                    "user_id": said.user_id,
                    "session_id": said.session_id,
                    "roles": said.roles,
                    "approval_id": named,
                    "decision": how,
                    "reason": reason or None,
                }
            )
        )

    def _may(self, card: ApprovalRequest, answer: messages.ApprovalMessage) -> bool:
        return bool(
            failpoints.without("who-answers")
            or (card.user_id and people.sees(answer.user_id, card.user_id))
            or self.approvers & set(answer.roles)
        )

    async def decide(self, card: ApprovalRequest, wanted: Decided) -> Decided:
        """Decide, unless it was; then let everybody know who waits for it."""
        decision = await self.approvals.decide(card.id, wanted)
        if card.session:
            await self._bus.command("HDEL", self.approvals.open_in(card.session), card.id)
        await self._outbox.put([card.row(decision)])
        if decision.how == "always":
            grant = grants.row(card, decision)
            try:
                await self._store.upsert([grant])
            except StoreUnavailable:
                await self._outbox.put([grant])
        wake_up = self._queue(card.queue or card.agent).wake_up
        await self._bus.publish(wake_up, json.dumps({"look": card.home}).encode())
        return decision

    async def withdraw(self, turn: Turn) -> None:
        """End the questions of a turn that ends without their answers; answers that came too late are noted."""
        for card in unanswered(turn.records):
            decision = await self.decide(card, Decided("withdrawn", at=await self.now()))
            turn.keep(decided_record(card, decision))
            turn.keep(
                CheckRecord(
                    at=decision.at,
                    call=card.call,
                    action=storable(card.action)[:8000],
                    decision=AUDITED[decision.how],
                    person=decision.by,
                    profile="",
                    detail={"call": card.call, "how": decision.how, "why": "its turn ended"},
                )
            )

    async def now(self) -> int:
        """Milliseconds, by the server's clock."""
        seconds, micros = await self._bus.command("TIME")
        return int(seconds) * 1000 + int(micros) // 1000


def decided_record(card: ApprovalRequest, decision: Decided) -> DecidedRecord:
    """The answer as the journal of the turn keeps it."""
    return DecidedRecord(
        at=decision.at,
        call=card.call,
        card=card.id,
        how=decision.how,
        by=decision.by,
        reason=decision.reason,
        message=decision.message,
    )


def unanswered(records: Records) -> list[ApprovalRequest]:
    """The questions of a journal without an answer."""
    return [ApprovalRequest(**ask.card) for ask in records.pending()]


def answered_by(records: Records) -> list[str]:
    """The messages with which people decided in this turn: its closing output closes them too."""
    return [decided.message for decided in records.decisions() if decided.message]
