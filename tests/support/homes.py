"""A home as a release left it, killed in the middle of its work: made, kept as text, brought back.

    python -m tests.support.homes NAME

makes one with the code of this checkout in `tests/data/homes/NAME`, once for each release, before the schema or
the keys change again: a project with a note, a hook, a linked repository and a task that waits for Backend; and a
conversation of each of ann, bob, cat and dan (`RULES`). `tests/cluster/test_homes.py` starts a cluster from each.

    about.json   release, home id, namespace, and the moment at which it was left
    store.sql    the tables, one row a line
    redis.json   key by key: its type, its milliseconds to live (-1 for ever), and what it holds

`{{FOLDER}}` stands for the folder of the site. Brought back, all times move by as much as passed since then: a
question or a message would be too old otherwise.
"""

from __future__ import annotations

import json
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import redis

from shared.bus.embedded import Embedded
from shared.bus.keys import Names
from shared.client.local.release import release
from shared.store.records import TABLES
from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Rules
from tests.support.post import post
from tests.support.processes import ROOT, Site, site, until
from tests.support.valkey import free_port
from tests.support.wire import Wire, client
from tests.tools.ground import repository

KEPT = ROOT / "tests" / "data" / "homes"
FILES = {"README.md": "# Shop\n"}
KEY = "sk-ant-test-key-0000"
_FOLDER = "{{FOLDER}}"
_ISO = re.compile(r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{3,6})?(?:\+00:00|Z)?")
_NUMBER = re.compile(r"(?<![\w.])1\d{12}(?!\d)|(?<![\w.])1\d{9}(?=\.\d)")
_NEAR = 400 * 86_400  # seconds; a number that is no time this close to the moment is a number
Value = Any


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "input": arguments}


RULES: list[dict[str, Any]] = [
    {
        "user": "Write notes",
        "steps": [
            {"tools": [_call("create_file", path="NOTES.md", content="Notes of the shop\n")]},
            {"text": "I wrote NOTES.md."},
        ],
    },
    {
        "user": "delete",
        "steps": [
            {"tools": [_call("create_task", title="Old work")]},
            {"tools": [_call("delete_task", task_id="{{result.created}}")]},
            {"text": "Deleted: {{result.deleted}}{{result.error}}"},
        ],
    },
    {
        "user": "look twice",
        "steps": [
            {"text": "First this. ", "tools": [_call("check_agent_status", agent="planner")]},
            {"text": "Then that."},
        ],
    },
    {"steps": [{"text": "You said: {{user}}"}]},
]


SHOP = {"project_id": "shop"}
_MADE: list[tuple[str, dict[str, Any]]] = [
    ("create_project", {"name": "Shop"}),
    ("add_repo", {**SHOP, "source": "link", "name": "shop", "kind": "both"}),
    ("write_note", {**SHOP, "title": "Prices", "content": "Prices are in cents.\n"}),
    ("write_note", {"project_id": "default", "title": "Sailing", "content": "Boats need tides.\n"}),
    (
        "create_hook",
        {
            **SHOP,
            "name": "New year",
            "trigger": {"type": "cron", "cron": "0 9 1 1 *"},
            "prompt_template": "Wish a good year",
        },
    ),
    ("create_task", {**SHOP, "title": "Write notes", "repo_id": "shop"}),
]


def at(folder: Path, url: str, api: MessagesApi, names: Names) -> Any:
    """The site of such a home."""
    settings = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": api.url}
    return site(folder, url, PROMPTDOCK_NAMESPACE=names.namespace, **settings)


# -- made ------------------------------------------------------------------------------------------------------


def make(folder: Path, name: str) -> None:
    """Let a cluster work and kill it; what is left lies in `folder`."""
    with tempfile.TemporaryDirectory(prefix="promptdock-home-") as scratch:
        place = Path(scratch).resolve()
        server = Embedded(place / "redis", free_port())
        url, names = server.start(), Names(name)
        try:
            with MessagesApi(Rules(RULES)) as api, at(place / "site", url, api, names) as made:
                _live(made)
                keep(made, folder)
        finally:
            server.stop()


def _live(made: Site) -> None:
    """What the people of this home did until all of it was killed."""
    repository(made.folder / "shop", FILES)
    (chatter,) = made.up("chatter")
    with Wire(made.url, made.names) as wire:
        # Ids of their own: who meets this home later numbers messages from one again.
        for number, (tool, arguments) in enumerate(_MADE):
            given = {**arguments, **_path(made, tool)}
            sent = wire.send(user="ann", id=f"made-{number}", type="command", tool=tool, arguments=given)
            said = wire.closing(sent)
            assert said["status"] == "complete", said
        wire.ask("The sea is green.", user="ann", id="m-ann")
        wire.send("delete", user="bob", id="m-bob")
        wire.wait("chatter-output", lambda said: said["status"] == "awaiting_approval")
        until(lambda: made.query("select id from approvals where state = 'pending'"), what="the row of it")
        until(lambda: not wire.redis.xlen(f"{made.names.queue('chatter')}archive"), what="the archive")
        chatter.drain()
        (mortal,) = made.up("chatter", PROMPTDOCK_FAULT="result stored")
        wire.send("look twice", user="cat", id="m-cat")
        mortal.ended()
        waits = {"v": 1, "id": "m-dan", "type": "message", "user_id": "dan", "content": "Is anybody there?"}
        post(made.url, made.names, [waits])


def _path(made: Site, tool: str) -> dict[str, str]:
    return {"path": str(made.folder / "shop")} if tool == "add_repo" else {}


# -- kept ------------------------------------------------------------------------------------------------------


def keep(made: Site, folder: Path) -> None:
    """Write down a home whose processes have ended."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "release": release(),
        "commit": subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip(),
        "home_id": (made.home / "home-id").read_text().strip(),
        "namespace": made.names.namespace,
        "left_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }
    with client(made.url) as server:
        held = {key.decode(): _read(server, key) for key in sorted(server.scan_iter(count=1000))}
    with closing(sqlite3.connect(made.home / "promptdock.db")) as db:
        rows = "".join(f"{line}\n" for line in _sql(db))
    _write(folder / "about.json", json.dumps(about, indent=1) + "\n", made)
    _write(folder / "redis.json", json.dumps(held, indent=1, ensure_ascii=False) + "\n", made)
    _write(folder / "store.sql", rows, made)


def _write(path: Path, text: str, made: Site) -> None:
    text = text.replace(str(made.folder), _FOLDER)
    text = re.sub(rf"\b{re.escape(socket.gethostname())}(?=-\d+-)", "host", text)
    assert KEY not in text and str(ROOT) not in text, "a key or a path of this machine is in it"
    path.write_text(text, "utf-8")


def _sql(db: sqlite3.Connection) -> list[str]:
    """The file as statements. What triggers keep is not among the rows: they make it again."""
    kinds = dict(db.execute("select name, type from pragma_table_list where schema = 'main'"))
    listed = "select type, name, sql from sqlite_master where sql is not null order by name"
    made: dict[str, dict[str, str]] = {}
    for type, name, sql in db.execute(listed):
        if kinds.get(name) != "shadow" and not name.startswith("sqlite_"):
            made.setdefault(kinds.get(name, type), {})[name] = f"{sql};"
    lines = [f"PRAGMA user_version = {db.execute('PRAGMA user_version').fetchone()[0]};"]
    for type in ("table", "virtual", "trigger"):
        lines += made.get(type, {}).values()
    for kind in sorted(TABLES, key=lambda kind: kind.table):
        columns = [column for (column,) in db.execute("select name from pragma_table_info(?)", (kind.table,))]
        quoted, names = " || ', ' || ".join(f"quote({column})" for column in columns), ", ".join(columns)
        lines += [
            f"INSERT INTO {kind.table} ({names}) VALUES ({row});"
            for (row,) in db.execute(f"select {quoted} from {kind.table} order by rowid")
        ]
    return [*lines, *made.get("index", {}).values()]


def _read(server: redis.Redis, key: bytes) -> Value:
    kind = _text(server.type(key))
    read: dict[str, Any] = {
        "string": server.get,
        "hash": server.hgetall,
        "list": lambda key: server.lrange(key, 0, -1),
        "set": lambda key: sorted(server.smembers(key)),
        "zset": lambda key: server.zrange(key, 0, -1, withscores=True),
        "stream": server.xrange,
    }
    return {"type": kind, "ttl": server.pttl(key), "holds": _text(read[kind](key))}


def _text(value: Value) -> Value:
    """As JSON has it; UnicodeDecodeError for what is compressed, which no small home has."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {_text(key): _text(item) for key, item in value.items()}
    return [_text(item) for item in value] if isinstance(value, list | tuple) else value


# -- brought back ----------------------------------------------------------------------------------------------


def about(folder: Path) -> dict[str, str]:
    """What is told of a home that is kept."""
    told: dict[str, str] = json.loads((folder / "about.json").read_text("utf-8"))
    return told


def bring_back(folder: Path, made: Site) -> None:
    """Its files and its keys, in a site that nothing has started in."""
    told = about(folder)
    left = datetime.fromisoformat(told["left_at"])
    repository(made.folder / "shop", FILES)
    made.home.mkdir(mode=0o700)
    (made.home / "home-id").write_text(told["home_id"])
    text = {
        name: moved((folder / name).read_text("utf-8").replace(_FOLDER, str(made.folder)), left)
        for name in ("store.sql", "redis.json")
    }
    with closing(sqlite3.connect(made.home / "promptdock.db")) as db:
        db.executescript(text["store.sql"])
    with client(made.url) as server:
        for key, entry in json.loads(text["redis.json"]).items():
            _write_key(server, key, entry)


def _write_key(server: redis.Redis, key: str, entry: dict[str, Any]) -> None:
    held = entry["holds"]
    match entry["type"]:
        case "string":
            server.set(key, held)
        case "hash":
            server.hset(key, mapping=held)
        case "list":
            server.rpush(key, *held)
        case "set":
            server.sadd(key, *held)
        case "zset":
            server.zadd(key, dict(held))
        case "stream":
            for id, fields in held:
                server.xadd(key, fields, id=id)
        case other:
            raise ValueError(f"{key} is a {other}")
    if entry["ttl"] > 0:
        server.pexpire(key, entry["ttl"])


def moved(text: str, left: datetime) -> str:
    """The text with each time in it as much later as it is now later than `left`."""
    passed = datetime.now(UTC) - left

    def iso(match: re.Match[str]) -> str:
        """In the form that it had: so many digits, this letter between date and time, this zone."""
        seconds, zone = re.fullmatch(r"(.*?)((?:\+00:00|Z)?)", match[0]).groups()  # type: ignore[union-attr]
        digits = len(seconds.partition(".")[2])
        later = (datetime.fromisoformat(seconds) + passed).isoformat(seconds[10], "microseconds")
        return f"{later[: 20 + digits] if digits else later[:19]}{zone}"

    def number(match: re.Match[str]) -> str:
        value, scale = int(match[0]), 1000 if len(match[0]) == 13 else 1
        near = abs(value / scale - left.timestamp()) < _NEAR
        return str(value + round(passed.total_seconds() * scale)) if near else match[0]

    return _NUMBER.sub(number, _ISO.sub(iso, text))


if __name__ == "__main__":
    make(KEPT / sys.argv[1], sys.argv[1])
