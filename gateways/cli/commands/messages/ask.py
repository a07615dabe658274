"""`ask`: one message, its progress, its one answer."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import sys
from collections.abc import Callable
from uuid import uuid4

from gateways.cli import screen
from gateways.cli.approval_prompt import ApprovalPrompt
from gateways.cli.commands import repo
from gateways.cli.commands.messages.request import Conversation, Request
from gateways.cli.commands.messages.waiting import SETTLE, Limit, Order
from gateways.cli.run import me
from shared.bus.decisions import decision as decides
from shared.bus.messages import CLOSING, Output
from shared.client import Client
from shared.client.feed import Feed
from shared.client.local.typed import text_of
from shared.client.text.stream import Stream
from shared.client.types import Heard
from shared.client.views import pending, questions, status
from shared.client.views.permissions import approvals
from shared.client.views.tasks.progress import TurnProgress
from shared.errors import BadMessage, PromptDockError, StoreUnavailable, TimedOut, UsageError
from shared.settings import Settings

_STOP = 3.0  # seconds that telling the turn to stop may take


async def ask(settings: Settings, request: Request) -> int:
    """0 for an answer or a question back, else the code of the error; TimedOut when neither came."""
    text = screen.typed(request.text)
    if not text.strip():
        raise UsageError(
            "there is nothing to ask", "the text is empty", 'e.g. promptdock ask "Plan a login page"'
        )
    message_id = str(uuid4())
    async with Client(settings) as client:
        await client.reach()
        if sys.stderr.isatty() and not request.as_json:
            await repo.offer(client)
        work, where = TurnProgress(), Conversation(request.conversation)
        try:
            async with client.outputs() as feed:
                return await _asked(client, feed, request, text, message_id, work, where)
        except asyncio.CancelledError:
            await _stop(client, request, message_id, work, where)
            raise


async def _asked(
    client: Client,
    feed: Feed,
    request: Request,
    text: str,
    message_id: str,
    work: TurnProgress,
    where: Conversation,
) -> int:
    found = request.way.threaded and not request.session
    if not found:
        text = await _numbered(client, where.session, request.user, text)
    # Looked for before it is sent: when it is accepted the request may be answered already.
    answers = not found and await approvals.answered(client, where.session, request.user, text)
    ended = asyncio.Event()
    stream = Stream(screen.write, screen.talk) if screen.draws() and not request.as_json else None
    mark = await client.moment() if found else await client.mark(where.session)
    order = Order()
    attended = sys.stdin.isatty() and not request.as_json
    limit = Limit(request.timeout, attended)

    def watched() -> asyncio.Task[None]:
        return asyncio.create_task(_watch(client, where.session, work, mark, ended, stream, order, limit))

    live = None if found else watched()
    try:
        sent = await client.say(
            text,
            request.user,
            request.session,
            force=request.force,
            message_id=message_id,
            source="cli",
            **request.way.fields(),
        )
    except BadMessage as error:
        if live is not None:
            live.cancel()
        raise UsageError(error.what, error.why, error.fix) from error
    where.session = sent.session or where.session
    session, live = where.session, live or watched()
    if unread := await status.unread(client, sent):
        screen.talk(f"… {unread}")
    elif sent.waiting and not answers:
        with contextlib.suppress(PromptDockError):
            if before := await pending.behind(client, session, message_id):
                screen.talk(f"… this waits behind: {before}")
    try:
        if request.timeout == 0:
            return _accepted(request, message_id, sent.outcome)
        async with limit, ApprovalPrompt(client, request.user) as prompt:
            here = prompt if attended else None
            if await _remind(client, session, request, text, here):
                limit.asked()
            output = await _closing(feed, request.user, message_id, here, client.shown, stream, order)
        if output.usage:  # else it is not a turn of ours, which tells its events
            await _briefly(ended)
        await order.end()
    except TimeoutError:
        raise TimedOut(
            f"no answer came in {limit.seconds:.0f} s",
            f"message {message_id} is accepted and will still be answered",
            await _remedy(client, session, request.user),
        ) from None
    finally:
        live.cancel()
        with contextlib.suppress(asyncio.CancelledError, PromptDockError):
            await live
    return _answer(output, request, stream)


async def _numbered(client: Client, session: str, user: str, text: str) -> str:
    """A number as the answer that it means to a request for permission; UsageError for one that means nothing."""
    if not text.strip()[:1].isdecimal():
        return text
    if put := [str((one.approval or {}).get("id")) for one in await approvals.waiting(client, session, user)]:
        if there := approvals.beyond(text, put):
            fix = "1 allows it once, 2 always, 3 denies it"
            raise UsageError(f"{text.strip()[:20]} does not answer the request for permission", there, fix)
        return approvals.worded(text)
    with contextlib.suppress(StoreUnavailable):
        for asked in await questions.questions(client, user, session):
            if there := questions.beyond(text, len(asked.options)):
                told = ", ".join(f"{number}. {one}" for number, one in enumerate(asked.options, 1))
                what = f"{text.strip()[:20]} is no option of the question: {asked.asked}"
                raise UsageError(what, there, f"answer it with one of {told}, or in words")
    return text


async def _remind(
    client: Client, session: str, request: Request, text: str, prompt: ApprovalPrompt | None
) -> bool:
    """What this message waits behind: a request that the person has not answered yet; whether there is one."""
    waits = False
    if decides(text):
        return waits
    with contextlib.suppress(PromptDockError):
        for output in await approvals.waiting(client, session, request.user):
            waits = True
            screen.talk(f"… {text_of(output)}")
            how = '"yes", "always" or "no"' if approvals.lasts(output.approval) else '"yes" or "no"'
            screen.talk(f"… your message waits behind this; answer with: promptdock ask {how}")
            if prompt is not None:
                await prompt.put(output)
    return waits


async def _remedy(client: Client, session: str, user: str) -> str:
    """What a person can do for a message that has no answer in time."""
    with contextlib.suppress(PromptDockError, TimeoutError):
        async with asyncio.timeout(_STOP):
            for output in await approvals.waiting(client, session, user):
                id = approvals.request_id(output)[: approvals.SHORT]
                return f"it waits for your permission: promptdock approvals allow {id} (or deny)"
    return "see what it waits for: promptdock pending"


def _accepted(request: Request, message_id: str, outcome: str) -> int:
    """Sent, and not awaited at all."""
    if request.as_json:
        screen.document("accepted", id=message_id, outcome=outcome)
    else:
        screen.out(f"{outcome}: message {message_id}")
        screen.talk("… see what it waits for: promptdock pending")
    return 0


async def _closing(
    feed: Feed,
    user: str,
    message_id: str,
    prompt: ApprovalPrompt | None,
    shown: Callable[[Heard], None],
    stream: Stream | None,
    order: Order,
) -> Output:
    async for item in feed:
        output = item.output
        ours = message_id in (output.in_reply_to, *output.answers)
        # A Chatter that is not ours may leave out what it answers.
        foreign = (
            output.via is None and not output.in_reply_to and not output.answers and output.user_id == user
        )
        if ours or foreign:
            shown(item)
            if output.status not in CLOSING:
                await _progress(output, prompt, stream)
        order.shown(item.cursor)
        if (ours or foreign) and output.status in CLOSING:
            return output
    raise PromptDockError("Chatter cannot be heard any more", "the stream of its outputs ended", "try again")


async def _progress(output: Output, prompt: ApprovalPrompt | None, stream: Stream | None) -> None:
    if stream is not None:
        await stream.settle()
    screen.talk(f"… {text_of(output)}")
    if prompt is not None and output.status == "awaiting_approval":
        await prompt.put(output)


async def _briefly(ended: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SETTLE):
            await ended.wait()


async def _watch(
    client: Client,
    session: str,
    work: TurnProgress,
    after: str,
    ended: asyncio.Event,
    stream: Stream | None,
    order: Order,
    limit: Limit,
) -> None:
    """The answer as it comes, and consults as they end; that they begin is told by Chatter itself."""
    async for event in client.events(session, after):
        if event.kind == "approval":
            limit.asked()
        elif event.kind in ("chunk", "tool_call", "tool_result"):
            limit.goes_on()
        if stream is not None:
            stream.take(event)
        consult = work.take(event.kind, event.payload)
        if consult is not None and not consult.open:
            order.tell(client, f"… {consult.told(0.0)}")
        if event.kind in ("done", "error") and not work.running:
            ended.set()


async def _stop(
    client: Client, request: Request, message_id: str, work: TurnProgress, where: Conversation
) -> None:
    """Whoever leaves ends the work too, but only if it is this message that is worked on."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
    if work.running and work.turn == message_id:
        session = where.session
        with contextlib.suppress(PromptDockError, TimeoutError):
            async with asyncio.timeout(_STOP):
                open_now = await approvals.waiting(client, session, request.user)
                await client.stop(request.user, session, turn_id=message_id)
                asks = any(output.in_reply_to == message_id for output in open_now)
                screen.talk(
                    "… stopped" + ("; its request for permission is withdrawn: nothing is allowed" * asks)
                )


def _answer(output: Output, request: Request, stream: Stream | None) -> int:
    failed = output.status == "error"
    streamed = stream is not None and stream.of(output)
    if stream is not None and streamed:
        stream.end(output)
    code = (output.code or PromptDockError.exit_code) if failed else 0
    if request.as_json:
        more = {"error": screen.card(output.content, code=code)} if failed else {}
        screen.document("ask", **output.model_dump(exclude_none=True, exclude={"via", "v"}), **more)
    elif failed:
        screen.talk(screen.bad("promptdock:"), f" {text_of(output)}")
    else:
        if not streamed:
            screen.answer(text_of(output))
        _options(output, request, streamed)
        if output.agent:
            screen.talk(f"… {output.agent} answered")
        for told in output.footer or ():
            screen.talk(f"… {told}")
    return code


def _options(output: Output, request: Request, asked: bool) -> None:
    if output.status != "awaiting_input":
        return
    if not asked and (question := questions.unsaid(output)):
        screen.out(question)
    for option in questions.numbered(output.options or []):
        screen.out(option)
    same = f" --session {shlex.quote(request.session)}" if request.session else ""
    same += f" --thread {output.thread_id}" if output.thread_id and not request.session else ""
    same += f" --channel {shlex.quote(request.way.channel)}" if request.way.channel else ""
    same += f" --user {shlex.quote(request.user)}" if request.user != me() else ""
    screen.talk(f'… this is a question to you; answer it with: promptdock ask "…"{same}')
