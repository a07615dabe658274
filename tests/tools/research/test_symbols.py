"""find_symbols, in the languages that it knows and on the source of real packages."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from shared.tools.context import Context
from shared.tools.files import search as engine
from shared.tools.research import grammar, routes_script, shapes
from shared.tools.research.symbols import category
from tests.tools.ground import call, context, package, repository

SOURCE = {
    "app/users.py": '''"""def not_a_function(): only text"""
LIMIT = 3
Ids = NewType("Ids", int)


class User(Base):
    """class NotAClass: neither"""

    @property
    def name(self) -> str:
        async def inner() -> None: ...


@app.get("/users/{id}")
async def read_user(id: int) -> User:
    pass
''',
    "web/user.ts": """export interface User { id: number }
export type UserId = string;
export default class UserList extends List {
  async loadUsers(page: number): Promise<User[]> {
    if (page) {
    }
  }
}
export const useUser = (id: string) => fetch(id);
const MAX_USERS = 10;
export async function saveUser(user: User) {}
router.post("/users", create);
""",
    "srv/user.go": """type User struct {
}
func (u *User) Save() error {
}
func NewUser() *User {
}
r.GET("/users", list)
""",
    "core/user.rs": """pub struct User {
}
pub(crate) async fn load_user() {}
impl User {
    fn save_user(&self) {}
}
""",
    "src/User.java": """public final class User {
    private static List<User> findUsers(int n) {
    }
}
""",
    "db/users.sql": """create table if not exists public.users (id int);
CREATE OR REPLACE FUNCTION user_count() RETURNS int
""",
    "lib/user.rb": "class User\n  def user_name\n  end\nend\n",
    "api/user.proto": "message UserReply {\n}\n",
    "c/user.c": "#define USER_MAX 3\nstatic int user_open(const char *name) {\n}\nint user_declared(void);\n",
}


@pytest.fixture
def here(tmp_path: Path) -> Context:
    return context(repository(tmp_path / "shop", SOURCE))


async def symbols(here: Context, name: str = "", **more: Any) -> set[tuple[str, str, str, int]]:
    found = await call(category, "find_symbols", here, name=name, **more)
    assert found["source"] == "repository"
    return {(s["name"], s["kind"], s["path"].removeprefix("shop/"), s["line"]) for s in found["symbols"]}


EXPECTED = [
    ("User", "class", "app/users.py", 6),
    ("name", "method", "app/users.py", 10),
    ("inner", "function", "app/users.py", 11),
    ("read_user", "function", "app/users.py", 15),
    ("/users/{id}", "route", "app/users.py", 14),
    ("LIMIT", "constant", "app/users.py", 2),
    ("Ids", "type", "app/users.py", 3),
    ("User", "type", "web/user.ts", 1),
    ("UserId", "type", "web/user.ts", 2),
    ("UserList", "class", "web/user.ts", 3),
    ("loadUsers", "method", "web/user.ts", 4),
    ("useUser", "function", "web/user.ts", 9),
    ("MAX_USERS", "constant", "web/user.ts", 10),
    ("saveUser", "function", "web/user.ts", 11),
    ("/users", "route", "web/user.ts", 12),
    ("User", "type", "srv/user.go", 1),
    ("Save", "method", "srv/user.go", 3),
    ("NewUser", "function", "srv/user.go", 5),
    ("/users", "route", "srv/user.go", 7),
    ("User", "type", "core/user.rs", 1),
    ("load_user", "function", "core/user.rs", 3),
    ("save_user", "function", "core/user.rs", 5),
    ("User", "class", "src/User.java", 1),
    ("findUsers", "method", "src/User.java", 2),
    ("users", "table", "db/users.sql", 1),
    ("user_count", "function", "db/users.sql", 2),
    ("User", "class", "lib/user.rb", 1),
    ("user_name", "function", "lib/user.rb", 2),
    ("UserReply", "type", "api/user.proto", 1),
    ("USER_MAX", "constant", "c/user.c", 1),
    ("user_open", "function", "c/user.c", 2),
]


@pytest.mark.parametrize("engine_name", ["ripgrep", "python"])
async def test_all_definitions_are_found_and_nothing_else(
    here: Context, monkeypatch: pytest.MonkeyPatch, engine_name: str
) -> None:
    if engine_name == "python":
        monkeypatch.setattr(engine, "ripgrep", lambda: None)
    assert await symbols(here) == set(EXPECTED)


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda e: f"{e[2]}:{e[0]}")
async def test_each_is_found_by_its_name_in_any_case_and_by_its_kind(
    here: Context, expected: tuple[str, str, str, int]
) -> None:
    assert expected in await symbols(here, expected[0].swapcase())
    assert expected in await symbols(here, expected[0][1:-1] or expected[0], kind=expected[1])


async def test_equal_names_come_first(here: Context) -> None:
    found = await call(category, "find_symbols", here, name="user")
    names = [symbol["name"] for symbol in found["symbols"]]
    assert set(names[:6]) == {"User"}
    assert len(names) > 6


async def test_the_place_can_be_narrowed_and_the_answer_is_bounded(here: Context) -> None:
    assert {path for _, _, path, _ in await symbols(here, "user", path="shop/srv")} == {"srv/user.go"}
    assert {path for _, _, path, _ in await symbols(here, path="app/users.py")} == {"app/users.py"}
    found = await call(category, "find_symbols", here, max_results=5)
    assert (len(found["symbols"]), found["truncated"]) == (5, True)


async def test_names_with_the_letters_of_the_patterns_and_of_regexes_are_only_names(tmp_path: Path) -> None:
    here = context(repository(tmp_path / "shop", {"a.py": "def NAME_PATH(): ...\ndef größe(): ...\n"}))
    assert {name for name, *_ in await symbols(here, "name_path")} == {"NAME_PATH"}
    assert {name for name, *_ in await symbols(here, "größe")} == {"größe"}
    for name in ("(", ".*", "[", "\\", "a b", '"'):
        assert await symbols(here, name) == set()


async def test_python_that_does_not_parse_is_still_searched_by_pattern(tmp_path: Path) -> None:
    here = context(repository(tmp_path / "shop", {"old.py": "def broken():\n    print 'x'\n"}))
    assert await symbols(here) == {("broken", "function", "old.py", 1)}


SCRIPT = """const text = `
export function notAFunction() {}
`;
/*
class NotAClass {}
*/
export default abstract class Page<T> extends Base<T> {
  #load(
    id: string,
  ) {}
  static async *walk(id: string): AsyncGenerator<T> {
  }
}
const LIMIT = (3), Total = 4;
const render = (
  props: Props,
) => <p title="class Text {}">{props.text}</p>;
const none = (await load()).map((x) => x);
export namespace Shapes { }
declare function overloaded(a: string): void;
this.router.get(`/a/${id}`, show);
if (x) {
}
"""


@pytest.mark.parametrize("file", ["page.tsx", "page.vue"])
async def test_a_script_is_read_by_its_grammar(tmp_path: Path, file: str) -> None:
    text = f'<script lang="tsx">{SCRIPT}</script>\n' if file.endswith("vue") else SCRIPT
    here = context(repository(tmp_path / "shop", {file: text}))
    assert {(name, kind, at) for name, kind, _, at in await symbols(here)} == {
        ("Page", "class", 7),
        ("walk", "method", 11),
        ("LIMIT", "constant", 14),
        ("render", "function", 15),
        ("Shapes", "type", 19),
        ("overloaded", "function", 20),
        ("/a/${id}", "route", 21),
    }


async def test_a_script_that_does_not_parse_is_still_searched_by_pattern(tmp_path: Path) -> None:
    here = context(repository(tmp_path / "shop", {"old.ts": "export function broken() {{{ (\n@@\n"}))
    assert await symbols(here) == {("broken", "function", "old.ts", 1)}


async def test_source_that_is_made_to_break_the_parser_breaks_nothing(tmp_path: Path) -> None:
    deep = "def target(): ...\nx = " + "(" * 50_000 + ")" * 50_000 + "\n"
    long = "def target(): ...\nx = a" + ".b" * 50_000 + "\n"
    files = {"deep.py": deep, "long.py": long}
    assert {path for _, _, path, _ in await found_in(tmp_path, files)} == files.keys()


EVIL = {
    "open.ts": "(" * 200_000,
    "braces.ts": "{" * 300_000,
    "templates.ts": "`${" * 100_000,
    "generics.ts": "a" + "<b" * 200_000,
    "calls.ts": "app.get(" * 100_000,
    "chain.ts": "app.route('/x')" + ".get(a)" * 20_000,
    "sum.ts": "fetch('/x'" + " + a" * 100_000 + ")",
    "union.ts": "type A = { x: 1" + " | 2" * 100_000 + " }",
    "tags.vue": "<script" * 100_000,
    "values.svelte": "<a b='{" * 100_000,
    "huge.ts": "const a = 'x';\n" * 150_000,
}


@pytest.mark.parametrize("file", EVIL)
async def test_a_script_that_is_made_to_take_long_does_not(tmp_path: Path, file: str) -> None:
    begun = time.process_time()
    begin, end = ("\n", "\n") if file.endswith(".ts") else ("<script>\n", "\n</script>\n")
    text = f"{begin}export function target() {{}}{end}{EVIL[file]}"
    assert ("target", "function", file, 2) in await found_in(tmp_path, {file: text})
    routes_script.facts(file, text)
    routes_script.calls(file, text)
    shapes.script_shapes(file, text)
    assert time.process_time() - begun < 20


def test_a_grammar_is_loaded_only_for_a_script() -> None:
    program = (
        "import sys\nfrom shared.tools.research import conflicts, symbols, grammar\n"
        "print(any(name.startswith('tree_sitter') for name in sys.modules))\n"
        "grammar.syntax('a.js', 'a')\n"
        "print('tree_sitter_javascript' in sys.modules, 'tree_sitter_typescript' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["False", "True", "False"]


async def test_a_script_is_given_up_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "fetch('/x');\n" * 20_000
    assert grammar.syntax("a.ts", text) is not None
    monkeypatch.setattr(grammar, "PATIENCE", 0.0)
    assert grammar.syntax("a.ts", text) is None
    monkeypatch.setattr(grammar, "LONGEST", 10)
    assert routes_script.calls("a.ts", text) == []


async def found_in(tmp_path: Path, files: dict[str, str]) -> set[tuple[str, str, str, int]]:
    return await symbols(context(repository(tmp_path / "shop", files)), "target")


async def test_definitions_of_a_real_package_are_found(tmp_path: Path) -> None:
    here = context(package("redis", tmp_path / "shop"))
    assert ("Redis", "class", "redis/client.py") in {found[:3] for found in await symbols(here, "Redis")}
    assert ("execute_command", "method", "redis/client.py") in {
        found[:3] for found in await symbols(here, "execute_command", kind="method")
    }


async def test_five_thousand_files_take_seconds(tmp_path: Path) -> None:
    body = "".join(f"def helper_{n}(x: int) -> int:\n    return x + {n}\n\n\n" for n in range(40))
    files = {f"pkg{n % 100}/module{n}.py": f"{body}class Thing{n}:\n    pass\n" for n in range(5000)}
    here = context(repository(tmp_path / "shop", files))
    begun = time.monotonic()
    assert await symbols(here, "Thing4711") == {("Thing4711", "class", "pkg11/module4711.py", 161)}
    assert time.monotonic() - begun < 15
