"""Attacks on the page: from another page in the same browser, from the network, from a colleague, by guessing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from gateways.web.access import Access
from gateways.web.app import create_app
from gateways.web.errors import HttpError
from shared.client import Client
from shared.client.local.people import People
from shared.client.views import listings, visible
from shared.errors import ConfigurationError, Missing
from shared.settings import Settings
from shared.store.factory import make_store
from shared.store.records import Session, TurnRow
from tests.support.guards import guarded

REFUSED = (403, 421)


def app(home: Path, **given: Any) -> FastAPI:
    """The application, with nothing behind it."""
    return create_app(Settings(PROMPTDOCK_HOME=home, **given))


async def asked(made: FastAPI, method: str, path: str, **headers: str) -> int:
    """What it answers, to a caller on this machine."""
    transport = httpx.ASGITransport(made, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:12319") as line:
        return (await line.request(method, path, headers=headers)).status_code


@guarded("web-place")
async def test_a_page_of_others_speaks_for_nobody(tmp_path: Path) -> None:
    made = app(tmp_path)
    assert await asked(made, "GET", "/api/status", Host="rebound.example:12319") in REFUSED
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert await asked(made, "POST", "/api/sessions/x/stop", **headers) in REFUSED


@guarded("web-open")
def test_nobody_elsewhere_finds_it_open(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.7", "box.example"):
        refused = False
        try:
            app(tmp_path, PROMPTDOCK_WEB_HOST=host)
        except ConfigurationError:
            refused = True
        assert refused, host


@guarded("web-sight")
async def test_a_colleague_sees_no_conversation_of_anothers(tmp_path: Path) -> None:
    settings = Settings(PROMPTDOCK_HOME=tmp_path)
    People(tmp_path).add("bob", "correct horse")
    store = make_store(settings)
    await store.open()
    await store.insert(Session(key="hers", user_id="ada", title="A secret plan"))
    await store.insert(
        TurnRow(turn_id="t.1.1", agent="planner", session_id="t.1.1", user_id="ada", state="complete")
    )
    await store.close()
    bob = Access(settings, "secret").sign_in("bob", "correct horse", "127.0.0.1")[0]
    async with Client(settings) as client:
        assert (await listings.sessions(client, bob.sight)).items == []
        for name in ("hers", "t.1.1"):  # a conversation, and where the Planner answered for it
            seen = True
            try:
                await visible.session(client, bob.sight, name)
            except Missing:
                seen = False
            assert not seen, name
        await visible.session(client, bob.sight, "new")


@guarded("web-tries")
def test_a_password_is_not_guessed_by_trying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    People(tmp_path).add("ada", "correct horse")
    access, met = Access(Settings(PROMPTDOCK_HOME=tmp_path), "secret"), list[int]()
    monkeypatch.setattr(access.people, "check", lambda name, password: None)  # which takes a while
    for number in range(50):
        try:
            access.sign_in("ada", f"guess {number}", "192.0.2.9")
        except HttpError as error:
            met.append(error.status)
    assert met.count(401) <= 5


def test_a_network_of_the_sixth_version_is_one_guesser(tmp_path: Path) -> None:
    access = Access(Settings(PROMPTDOCK_HOME=tmp_path), "secret")
    for number in range(5):
        access.tries.failed(f"2001:db8::{number}")
    with pytest.raises(HttpError, match="too many"):
        access.tries.check("2001:db8::ffff")
    access.tries.check("2001:db8:0:1::1")
