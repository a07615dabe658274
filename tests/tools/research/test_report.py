"""Citations that are checked, the Researcher's answer, and conflicts between repositories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shared.errors import ToolError
from shared.guard.sandbox.sandbox import Sandbox
from shared.tools.context import Context, Root
from shared.tools.research import pins
from shared.tools.research.conflicts import SourceConflict, detect_conflicts
from shared.tools.research.report import Report, ResearchFinding, answer, category
from tests.tools.ground import call, context, package, repository

BACKEND = {"app.py": 'import jwt\n\n\ndef login(user):\n    return jwt.encode({"sub": user},   KEY)\n'}
FRONTEND = {"src/auth.ts": "export const token = 1;\n\nexport const other = 2;\n"}


@pytest.fixture
def here(tmp_path: Path) -> Context:
    return context(
        repository(tmp_path / "site", FRONTEND, "frontend"), repository(tmp_path / "api", BACKEND, "backend")
    )


def finding(**changes: Any) -> dict[str, Any]:
    right = {
        "repo": "api",
        "file": "app.py",
        "line": 4,
        "text": "def login(user):",
        "claim": "there is a login",
    }
    return right | changes


async def report(here: Context, *findings: dict[str, Any], **more: Any) -> dict[str, Any]:
    arguments = {"findings": list(findings), "confidence": 0.8} | more
    return await call(category, "report_findings", here, **arguments)


# Citations


async def test_a_report_whose_citations_hold_is_accepted(here: Context) -> None:
    told = await report(here, finding(area="auth"), recommendations=["reuse login"])
    assert (told["accepted"], told["citations"]) == (True, 1)
    assert told["report"]["findings"] == [finding(area="auth")]


@pytest.mark.parametrize(
    "citation",
    [
        {"line": 5, "text": 'jwt.encode({"sub": user}, KEY)'},  # white space does not count
        {"line": 5, "text": "return jwt.encode"},  # a part of the line
        {"line": 4, "text": 'def login(user):\n  return jwt.encode({"sub": user}, KEY)'},  # two lines
        {"file": "api/app.py"},  # with the repository's name in front, as the reading tools write it
        {"file": "./app.py"},
    ],
)
async def test_a_quote_is_compared_without_its_white_space_and_by_its_lines(
    here: Context, citation: dict[str, Any]
) -> None:
    told = await report(here, finding(**citation))
    assert told["report"]["findings"][0]["file"] == "app.py"


@pytest.mark.parametrize(
    ("citation", "why"),
    [
        ({"line": 1}, r"app.py:1 reads 'import jwt', not 'def login\(user\):' \(that stands on line 4\)"),
        ({"line": 6}, "the file has 5 lines"),
        ({"text": "def logout(user):"}, "reads 'def login"),
        ({"text": "  \n "}, "reads 'def login"),
        ({"file": "missing.py"}, "no such file"),
        ({"file": "../site/src/auth.ts"}, "leads out"),
        ({"file": "/etc/passwd", "line": 1, "text": "root"}, "absolute"),
        ({"file": ".git/config", "line": 1, "text": "core"}, "inside .git"),
        ({"repo": "nowhere"}, "there is no repository 'nowhere', there are site, api"),
    ],
)
async def test_a_wrong_citation_is_refused_with_what_really_stands_there(
    here: Context, citation: dict[str, Any], why: str
) -> None:
    with pytest.raises(ToolError, match=why) as refused:
        await report(here, finding(), finding(**citation))
    assert "1 of 2 citations" in str(refused.value)


async def test_all_wrong_citations_are_told_at_once_those_of_conflicts_too(here: Context) -> None:
    side = {"repo": "site", "file": "src/auth.ts", "line": 1, "text": "export const token = 1;"}
    conflict = {"kind": "naming", "summary": "s", "left": side, "right": side | {"line": 2}}
    with pytest.raises(ToolError) as refused:
        await report(here, finding(line=2), finding(line=3), conflicts=[conflict])
    assert "3 of 4" in str(refused.value)
    assert all(place in str(refused.value) for place in ("app.py:2", "app.py:3", "auth.ts:2"))
    told = await report(here, conflicts=[conflict | {"right": None}])
    assert told["report"]["conflicts"][0]["right"] is None


@pytest.mark.parametrize(
    "arguments",
    [
        {"confidence": 1.5},
        {"findings": [finding(line=0)]},
        {"findings": [finding(text="")]},
        {"conflicts": [{"kind": "mood", "summary": "s", "left": finding()}]},
        {"extra": 1},
    ],
)
async def test_arguments_of_another_form_are_refused(here: Context, arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match="cannot take these arguments"):
        await report(here, **arguments)


async def test_what_grep_says_can_be_cited_as_it_is(here: Context) -> None:
    from shared.tools.files.browse import category as files

    match = (await call(files, "grep", here, pattern="encode"))["matches"][0]
    repo, _, file = match["path"].partition("/")
    await report(here, finding(repo=repo, file=file, line=match["line"], text=match["text"]))


async def test_a_finding_in_a_real_package_is_verified(tmp_path: Path) -> None:
    here = context(package("redis", tmp_path / "driver"))
    lines = (tmp_path / "driver" / "redis" / "client.py").read_text().split("\n")
    number = next(n for n, line in enumerate(lines, 1) if line.startswith("class Redis("))
    told = await report(
        here, finding(repo="driver", file="redis/client.py", line=number, text=lines[number - 1])
    )
    assert told["accepted"]


# The answer


async def test_the_answer_has_the_older_text_beside_the_structure(here: Context) -> None:
    told = await report(
        here,
        finding(claim="Login makes\n  a token"),
        finding(line=1, text="import jwt", claim="PyJWT is there"),
        recommendations=["reuse login", "no new library"],
    )
    made = answer(Report.model_validate(told["report"]), here.roots)
    assert made["findings"] == {
        "frontend": "No findings.",
        "backend": "Login makes a token (api/app.py:4)\nPyJWT is there (api/app.py:1)",
    }
    assert made["recommendation"] == "reuse login\nno new library"
    assert made["recommendations"] == ["reuse login", "no new library"]
    assert made["citations"][1] == {
        "repo": "api", "file": "app.py", "line": 1, "text": "import jwt", "claim": "PyJWT is there",
    }  # fmt: skip
    assert (made["confidence"], made["conflicts"]) == (0.8, [])
    assert made["commits"] == {name: root.commit for name, root in here.roots.items()}
    assert all(len(commit) == 40 for commit in made["commits"].values())


def test_in_a_repository_of_both_kinds_the_path_tells_the_side(tmp_path: Path) -> None:
    roots = {"all": Root("all", tmp_path)}
    findings = [
        ResearchFinding(repo="all", file=file, line=1, text="x", claim=file)
        for file in ("web/src/page.ts", "src/App.tsx", "server/main.py", "main.css")
    ]
    texts = answer(Report(findings=findings, confidence=1), roots)["findings"]
    assert texts["backend"] == "server/main.py (all/server/main.py:1)"
    assert texts["frontend"].count("\n") == 2


# Conflicts


async def found(
    tmp_path: Path, frontend: dict[str, str], backend: dict[str, str]
) -> list[tuple[str, str, str, str]]:
    """(kind, summary, left place, right place) of what a pair of repositories has, citations verified."""
    roots = [
        repository(tmp_path / "site", frontend, "frontend"),
        repository(tmp_path / "api", backend, "backend"),
    ]
    here = context(*roots)
    conflicts = (await call(category, "find_conflicts", here))["conflicts"]
    await report(here, conflicts=conflicts)  # every citation must pass our own check

    def place(side: dict[str, Any] | None) -> str:
        return f"{side['repo']}/{side['file']}:{side['line']}" if side else ""

    return [(c["kind"], c["summary"], place(c["left"]), place(c["right"])) for c in conflicts]


FASTAPI = """from fastapi import APIRouter, FastAPI
from .users import router as users_router

app = FastAPI()
api = APIRouter(prefix="/api")
api.include_router(users_router, prefix="/v1")
app.include_router(api)


@app.get("/health")
def health(): ...


@app.get("/health")
def health_again(): ...
"""
USERS = """from fastapi import APIRouter

router = APIRouter(prefix="/users")


@router.get("")
def all_users(): ...


@router.get("/{user_id}")
def one(user_id: int): ...


@router.post("")
def create(): ...
"""
CALLS = """const a = await fetch("/api/v1/users");
// fetch("/api/v1/comment")
const b = await fetch(`/api/v1/users/${id}?full=1`, { headers: {} });
const c = await fetch("/api/v1/users", { method: "POST", body });
const d = await axios.get("http://localhost:8000/health");
const e = await fetch("https://example.com/elsewhere");
"""


async def test_repositories_that_agree_have_no_conflict(tmp_path: Path) -> None:
    backend = {
        "app/main.py": FASTAPI.replace('"/health")\ndef health_again', '"/ready")\ndef ready'),
        "app/users.py": USERS,
    }
    assert await found(tmp_path, {"src/client.ts": CALLS}, backend) == []


async def test_a_route_that_is_defined_twice_is_found(tmp_path: Path) -> None:
    assert await found(
        tmp_path, {"src/client.ts": CALLS}, {"app/main.py": FASTAPI, "app/users.py": USERS}
    ) == [
        ("duplicate_route", "GET /health is defined twice in api", "api/app/main.py:10", "api/app/main.py:14")
    ]


FLASK = """from flask import Blueprint, Flask

bp = Blueprint("shop", __name__, url_prefix="/shop")


@bp.route("/items/<int:id>", methods=["GET", "DELETE"])
def item(id): ...


@bp.delete("/items/<item_id>")
def drop(item_id): ...


app = Flask(__name__)
app.register_blueprint(bp)
app.add_url_rule("/shop/items/<x>", view_func=item)
"""
STARLETTE = """from starlette.routing import Mount, Route

routes = [
    Route("/a", one),
    Route("/a", two, methods=["POST"]),
    Mount("/deep", routes=[
        Route("/a", one),
        Route("/a", three),
    ]),
]
"""
EXPRESS = """const express = require("express");
const users = require("./users");
const app = express();
app.use("/api/users", auth, users);
app.get("/api/users/:id", show);
app.route("/books").get(list)
  .post((req, res) => { res.json({ ok: ")" }) })
  .get(again);
"""
EXPRESS_USERS = """const router = require("express").Router();
// router.get("/:id", old);
router.get("/:name", show);
module.exports = router;
"""


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"app.py": FLASK},
            [("DELETE /shop/items/{}", 6, 10), ("GET /shop/items/{}", 6, 16)],
        ),
        ({"app.py": STARLETTE}, [("GET /deep/a", 7, 8)]),
        ({"app.js": EXPRESS, "users.js": EXPRESS_USERS}, [("GET /books", 6, 8), ("GET /api/users/{}", 5, 3)]),
    ],
    ids=["flask", "starlette", "express"],
)
async def test_duplicates_are_seen_through_prefixes_and_mounts(
    tmp_path: Path, files: dict[str, str], expected: list[tuple[str, int, int]]
) -> None:
    told = await found(tmp_path, {"a.ts": ""}, files)
    got = {
        (summary.removesuffix(" is defined twice in api"), int(left.split(":")[1]), int(right.split(":")[1]))
        for kind, summary, left, right in told
        if kind == "duplicate_route"
    }
    assert got == set(expected)


async def test_what_looks_like_a_route_and_is_none_is_not_taken_for_one(tmp_path: Path) -> None:
    patched = '@mock.patch("app.get")\n' * 2 + "def test(): ...\n"
    mocks = patched + 'client.get("/x")\n' * 2
    twice = '@app.get("/x")\ndef a(): ...\n@app.get("/x")\ndef b(): ...\n'
    two_apps = {"one.py": 'app = Flask(__name__)\n@app.get("/")\ndef a(): ...\n'}
    two_apps["two.py"] = two_apps["one.py"]
    backend = {
        "mocks.py": mocks,
        "tests/test_app.py": twice,
        "calls.js": 'axios.get("/x"); axios.get("/x");\n',
    }
    assert await found(tmp_path, {"a.ts": ""}, backend | two_apps) == []


ONE_HEALTH = {
    "app/main.py": FASTAPI.split('\n\n@app.get("/health")\ndef health_again')[0],
    "app/users.py": USERS,
}
UNSERVED = "which no route serves"


@pytest.mark.parametrize(
    ("call_", "kind", "summary", "right"),
    [
        ('fetch("/api/v1/orders")', "missing_field", f"GET /api/v1/orders, {UNSERVED}", ""),
        (
            'api.delete("/api/v1/users")',
            "type_mismatch",
            "DELETE /api/v1/users, but api serves it as GET",
            "api/app/users.py:6",
        ),
        (
            'fetch("/api/v1/user")',
            "naming",
            "GET /api/v1/user, but api names that route /api/v1/users",
            "api/app/users.py:6",
        ),
        ('axios({ url: "/api/o", method: "put" })', "missing_field", f"PUT /api/o, {UNSERVED}", ""),
        ("fetch(`${BASE}/o/${id}`, { method: 'PATCH' })", "missing_field", f"PATCH /o/{{}}, {UNSERVED}", ""),
        ('axios.get<User>("/orders/" + id)', "missing_field", f"GET /orders/{{}}, {UNSERVED}", ""),
    ],
)
async def test_a_call_that_no_route_serves_is_found(
    tmp_path: Path, call_: str, kind: str, summary: str, right: str
) -> None:
    told = await found(tmp_path, {"src/client.ts": f"\nawait {call_};\n"}, ONE_HEALTH)
    assert told == [(kind, f"site calls {summary}", "site/src/client.ts:2", right)]


@pytest.mark.parametrize(
    "call_",
    [
        'fetch("/v1/users")',  # the client's base address ends with /api
        "fetch(`${BASE}/users/7`)",
        'fetch("/proxy/api/v1/users")',
        "fetch('/api/v1/users', options)",  # the method is not known
        "fetch(url)",
        'fetch("relative/path")',
        'map.get("/not/a/call")',
        'fetch("/api/local")',  # served by the frontend itself
    ],
)
async def test_what_may_well_be_served_is_no_conflict(tmp_path: Path, call_: str) -> None:
    frontend = {"src/client.ts": f"{call_};\n", "app/api/local/route.ts": "export async function GET() {}\n"}
    assert await found(tmp_path, frontend, ONE_HEALTH) == []


SCRIPTS = {
    "a.ts": "const shown = `\nfetch('/in/a/template')\n`;\n/* fetch('/in/a/comment') */ // fetch('/in/another')\n",
    "b.tsx": "export const Page = () => <p title=\"fetch('/in/text')\">fetch('/in/text')</p>;\n",
    "c.js": 'const text = \'axios.get("/in/a/string")\', pattern = /fetch\\("\\/in\\/a\\/pattern"/;\n',
    "d.vue": "<template><p>fetch('/in/text')</p></template>\n<script>\n// fetch('/in/a/comment')\n</script>\n",
    "e.ts": "fetch(`/in/${a}\\u002f`); fetch('/nested', { body: { method: 'POST' }, ...options });\n",
}


async def test_text_that_only_looks_like_a_call_is_none(tmp_path: Path) -> None:
    backend = {**ONE_HEALTH, "nested.py": '@app.put("/nested")\ndef nested(): ...\n'}
    assert await found(tmp_path, {f"src/{name}": text for name, text in SCRIPTS.items()}, backend) == []


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("a.tsx", "const A = () =>\n  <b onClick={() => api.post('/o')}>x</b>;\n", [("POST /o", 2)]),
        ("a.jsx", "const A = () =>\n  <b onClick={() => api.post('/o')}>x</b>;\n", [("POST /o", 2)]),
        ("a.ts", "const a = <T>x;\nawait client.get<T[]>(`/o/${f({ a: '}' })}/p`);\n", [("GET /o/{}/p", 2)]),
        ("a.js", "// @flow\ntype A = { b: string };\nfetch('/o/' + id + '/p');\n", [("GET /o/{}/p", 3)]),
        ("a.js", "fetch('/o' + query);\nfetch('/p', { 'method': 'put' });\n", [("GET /o", 1), ("PUT /p", 2)]),
        ("a.ts", "const größe = 'ß';\nfetch('/o', { method: 'POST' } as RequestInit);\n", [("POST /o", 2)]),
        (
            "a.ts",
            "class {{{ (\n@@@\nexport const a = async () => {\n  await fetch('/o');\n};\n",
            [("GET /o", 4)],
        ),
        (
            "a.vue",
            "<template>\n  <b @click=\"api.delete('/o')\">{{ x }}</b>\n</template>\n"
            '<script setup lang="ts">\nconst a: A = await fetch("/p") as A;\n</script>\n'
            "<style>\n.a { color: red }\n</style>\n",
            [("DELETE /o", 2), ("GET /p", 5)],
        ),
        (
            "a.svelte",
            "<script>\nfetch('/o');\n</script>\n{#await fetch('/p')}\n<b on:click={() => { fetch('/q') }}>b</b>\n",
            [("GET /o", 2), ("GET /p", 4), ("GET /q", 5)],
        ),
    ],
    ids=["tsx", "jsx", "generic", "flow", "sum", "as", "broken", "vue", "svelte"],
)
async def test_calls_are_found_in_every_kind_of_script(
    tmp_path: Path, file: str, text: str, expected: list[tuple[str, int]]
) -> None:
    told = await found(tmp_path, {f"src/{file}": text}, ONE_HEALTH)
    lines = [(summary, left) for _, summary, left, _ in told]
    assert lines == [
        (f"site calls {call_}, {UNSERVED}", f"site/src/{file}:{number}") for call_, number in expected
    ]


async def test_a_script_whose_bytes_are_no_text_is_read_around_them(tmp_path: Path) -> None:
    site = repository(tmp_path / "site", {}, "frontend")
    (site.path / "a.ts").write_bytes(b"// caf\xe9 \xff\xfe\nconst a = '\xe9\xe9';\r\nfetch('/o');\r\n")
    api = repository(tmp_path / "api", ONE_HEALTH, "backend")
    conflicts = await detect_conflicts({"site": site, "api": api}, Sandbox("refused", "as this test says"))
    assert [(c.left.file, c.left.line, c.left.text) for c in conflicts] == [("a.ts", 3, "fetch('/o');")]


async def test_routers_are_followed_through_every_way_to_import_them(tmp_path: Path) -> None:
    main = (
        'import users, { orders as shop } from "./users";\nconst { books: shelf } = require("./books");\n'
        'const app = (await express()) as Express;\napp.use("/u", auth, users);\napp.use("/s", shop);\n'
        'app.use("/b", shelf);\napp.use("/r", require("./more")());\n'
        'app.get("/u/a", one); app.get("/s/a", one); app.get<Params>("/b/a", one); app.get("/r/a", one);\n'
    )
    users = (
        "const mine: Router = express.Router();\nexport const orders = Router({ mergeParams: true });\n"
        'mine.get("/a", x);\norders.get("/a", x);\nexport default mine;\n'
    )
    backend = {
        "main.ts": main,
        "users.ts": users,
        "books.js": 'const books = Router();\nbooks.get("/a", x);\n',
        "more.js": 'const more = Router();\nmore.get("/a", x);\nmodule.exports = more;\n',
    }
    told = await found(tmp_path, {"a.ts": ""}, backend)
    assert sorted((summary.split()[1], left, right) for _, summary, left, right in told) == [
        ("/b/a", "api/books.js:2", "api/main.ts:8"),
        ("/r/a", "api/main.ts:8", "api/more.js:2"),
        ("/s/a", "api/main.ts:8", "api/users.ts:4"),
        ("/u/a", "api/main.ts:8", "api/users.ts:3"),
    ]


async def test_a_backend_without_known_routes_proves_nothing(tmp_path: Path) -> None:
    assert await found(tmp_path, {"a.ts": 'fetch("/x");\n'}, {"main.go": "package main\n"}) == []


TYPES = """export interface Base {
  id: number;
}

export interface User extends Base {
  name: string;
  userEmail: string | null; // the address
  tags: Array<{ id: number; label: string }>;
  age: string;
  state: "on" | "off";
  nickname?: string;
  deep: {
    inner: number;
  };
  created: Date;
}

export type Order = { total: number, [key: string]: unknown };
export interface Only { here: number }
"""
MODELS = """from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Base(BaseModel):
    id: int


class User(Base):
    _private: int = 0
    KIND: ClassVar[str] = "user"
    name: str
    user_email: str | None = None
    tags: list["Tag"] = []
    age: Optional[int]
    state: Literal["on", "off"]
    deep: dict[str, int]
    created: datetime
    password: str


class Order(Unknown):
    sum: int
"""


AGE = "Optional[int] in api"


async def test_types_of_the_same_name_are_compared_field_by_field(tmp_path: Path) -> None:
    assert await found(tmp_path, {"src/types.ts": TYPES}, {"models.py": MODELS}) == [
        ("naming", "User: userEmail in site is user_email in api", "site/src/types.ts:7", "api/models.py:13"),
        ("type_mismatch", f"User.age is string in site, {AGE}", "site/src/types.ts:9", "api/models.py:15"),
        ("missing_field", "User.password is in api, not in site", "site/src/types.ts:5", "api/models.py:19"),
        ("extra_field", "User.nickname is in site, not in api", "site/src/types.ts:11", "api/models.py:9"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ("interface A { // x: string;\n  /* y: string */ x: number // last\n}", []),
        ("type A = { x: number } & { y?: string };", ["extra_field y"]),
        ("type B = { x: number };\ntype A = B & { y: string }", ["extra_field y"]),
        ("type A<T> = Readonly & {\n  x: T\n}", []),
        ("type A = { x: string } | { y: string }", ["type_mismatch x"]),
        ("interface A { 'x': readonly (string | null)[]; }", ["type_mismatch x"]),
        ("interface A { x: /* not */ -1 | 2 | undefined; z(): void; [key: string]: unknown }", []),
        ("interface A { x: { [key: string]: string } }", ["type_mismatch x"]),
        ("interface A { y: ((((;\n x: number", []),
        ("declare namespace N {\n  interface A { x: `a${string}` }\n}", ["type_mismatch x"]),
        ("const text = `\ninterface A { z: string }\n`;", []),
    ],
)
async def test_types_are_read_as_the_language_reads_them(
    tmp_path: Path, types: str, expected: list[str]
) -> None:
    told = await found(tmp_path, {"a.ts": types}, {"m.py": "class A(BaseModel):\n    x: int\n"})
    assert [f"{kind} {summary.split()[0].removeprefix('A.')}" for kind, summary, *_ in told] == expected


async def test_aliases_count_as_the_name_on_the_wire(tmp_path: Path) -> None:
    types = "interface Item {\n  itemName: string\n  unitPrice: number\n}\n"
    config = "    model_config = ConfigDict(alias_generator=to_camel)\n"
    camel = f"class Item(BaseModel):\n{config}    item_name: str\n    unit_price: float\n"
    aliased = (
        '@dataclass\nclass Item:\n    item_name: str = Field(alias="itemName")\n'
        '    unit_price: float = Field(alias="unitPrice")\n'
    )
    assert await found(tmp_path / "1", {"a.ts": types}, {"m.py": camel}) == []
    assert await found(tmp_path / "2", {"a.ts": types}, {"m.py": aliased}) == []
    plain = aliased.replace(' = Field(alias="itemName")', "").replace(' = Field(alias="unitPrice")', "")
    kinds = [kind for kind, *_ in await found(tmp_path / "3", {"a.ts": types}, {"m.py": plain})]
    assert kinds == ["naming", "naming"]


async def test_the_same_dependency_at_different_majors_is_found(tmp_path: Path) -> None:
    frontend = {
        "package.json": '{\n  "dependencies": {\n    "zod": "^3.22.0",\n    "react": "^18.0.0"\n  }\n}\n',
        "scripts/requirements.txt": "pydantic==1.10.2\nhttpx>=0.27\nPy_YAML~=6.0\n",
    }
    backend = {
        "package.json": '{\n  "devDependencies": {\n    "zod": "~4.1.0",\n    "react": ">=17"\n  }\n}\n',
        "pyproject.toml": (
            '[project]\ndependencies = [\n  "pydantic[email]>=2.5,<3",\n  "httpx==1.0",\n'
            '  "py-yaml>=5.4,<7",\n]\n'
        ),
    }
    assert await found(tmp_path, frontend, backend) == [
        (
            "version_mismatch",
            "zod is ^3.22.0 in site and ~4.1.0 in api",
            "site/package.json:3",
            "api/package.json:3",
        ),
        (
            "version_mismatch",
            "pydantic is ==1.10.2 in site and >=2.5,<3 in api",
            "site/scripts/requirements.txt:1",
            "api/pyproject.toml:3",
        ),
    ]


@pytest.mark.parametrize(
    ("spec", "majors"),
    [
        ("^1.2.3", {1}), ("~2.0", {2}), ("3", {3}), ("1.x", {1}), (">=1 <3", {1, 2}),
        (">=1.0.0 <3.1.0", {1, 2, 3}),
        ("1 - 2", {1, 2}), ("^1 || ^3", {1, 3}), (">=4", set()), ("*", set()), ("latest", set()),
        ("workspace:^1", set()), ("git+ssh://x", set()), ("<2", set()),
    ],
)  # fmt: skip
def test_npm_ranges_are_read_as_majors(spec: str, majors: set[int]) -> None:
    assert pins.npm_majors(spec) == majors


@pytest.mark.parametrize(
    ("spec", "majors"),
    [
        ("==1.2", {1}), ("~=2.1", {2}), (">=1,<3", {1, 2}), (">=1.5,<2.4", {1, 2}), (">=2", set()),
        ("!=3", set()), ("<2.0.5", {0, 1, 2}), ("<2.0.0", {0, 1}), ("==1.*", {1}), ("<=2", {0, 1, 2}),
        ("===1.2.post1", {1}), ("===anything", set()), ("~=2", set()), ("1!2", set()), ("*", set()),
        ("<2", {0, 1}),
    ],
)  # fmt: skip
def test_python_specifiers_are_read_as_majors(spec: str, majors: set[int]) -> None:
    assert pins.python_majors(spec) == majors


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Django==4.2 --hash=sha256:00 \\", "==4.2"),
        ("Django[argon2, bcrypt] >= 4 , < 5  # why", ">= 4 , < 5"),
        ('Django<5 ; python_version < "3.12"', "<5"),
        ("Django (>=4,<5)", ">=4,<5"),
        ("Django @ git+ssh://git@example.invalid/django==4", ""),
        ("Django", ""),
        ("-r django==4.txt", ""),
        ("# Django==4", ""),
        ("django = 4", ""),
    ],
)
def test_a_requirement_is_read_as_pip_reads_it(line: str, shown: str) -> None:
    assert [(pin.name, pin.shown) for pin in pins.pins("requirements.txt", f"{line}\n")] == (
        [("django", shown)] if shown else []
    )


async def test_files_that_do_not_parse_are_passed_over(tmp_path: Path) -> None:
    broken = {
        "package.json": "{", "pyproject.toml": "[", "a.py": "@app.get('/x'\nclass A(:\n",
        "b.ts": "interface A { x: ((((\n",
        "requirements.txt": "-r other.txt\n# comment\n",
    }  # fmt: skip
    assert await found(tmp_path, broken, broken) == []


async def test_a_repository_of_both_kinds_is_compared_with_itself(tmp_path: Path) -> None:
    root = repository(
        tmp_path / "all", {"server/app.py": '@app.get("/a")\ndef a(): ...\n', "web/a.ts": 'fetch("/b");\n'}
    )
    conflicts: list[SourceConflict] = await detect_conflicts(
        {"all": root}, Sandbox("refused", "as this test says")
    )
    assert [(c.kind, c.left.file) for c in conflicts] == [("missing_field", "web/a.ts")]


async def test_real_packages_are_compared_without_an_invented_conflict(tmp_path: Path) -> None:
    roots = [package("redis", tmp_path / "driver"), package("pydantic", tmp_path / "models")]
    here = context(*roots, Root("site", repository(tmp_path / "site", FRONTEND).path, "frontend"))
    assert (await call(category, "find_conflicts", here))["conflicts"] == []


async def test_without_repositories_the_person_is_told_what_to_do() -> None:
    with pytest.raises(ToolError, match="promptdock repo add"):
        await call(category, "find_conflicts", context())
