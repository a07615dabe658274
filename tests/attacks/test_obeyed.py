"""Files that other programs obey: each is asked for, however it is written, and ordinary work is not."""

from __future__ import annotations

import pytest

from shared.guard.permissions import obeyed
from tests.attacks.ground import Ground
from tests.support.guards import guarded

ASKED = "nobody who could be asked"
BY_COMMANDS = [group for group in obeyed.GROUPS if group != "installed"]


def examples(group: str) -> list[str]:
    """A path for each name of the group."""
    names = (name.replace("*", "x") for name in obeyed.GROUPS[group].split())
    return [f"{name}x" if name.endswith("/") else name for name in names]


@guarded("obeyed-files")
@pytest.mark.parametrize("group", obeyed.GROUPS)
async def test_each_file_of_the_list_is_asked_for(group: str, builder: Ground) -> None:
    for number, path in enumerate(examples(group)):
        if path.startswith(".git/"):
            continue  # nobody may write there, asked or not
        spelled = [path, f"src/deep/{path}", path.upper(), f"./src/../{path}", f"{path}. "][number % 5]
        result = await builder.call("create_file", path=spelled, content="touch CANARY\n")
        assert ASKED in str(result.get("why")), spelled
        assert not (builder.root / path).exists()


@guarded("obeyed-files")
@pytest.mark.parametrize("group", BY_COMMANDS)
async def test_a_command_that_names_one_is_asked_for(group: str, builder: Ground) -> None:
    for number, path in enumerate(examples(group)):
        command = [
            f"echo x > {path}",
            f"cp f {path}",
            f"tee -a src/{path} < f",
            f"ln -sf f './{path}'",
            f"sed -i s/a/b/ {path[:2]}''{path[2:]}",
            f"python3 -c \"open('{path}','w')\"",
        ][number % 6]
        result = await builder.call("bash", command=command)
        assert ASKED in str(result.get("why")), command


@pytest.mark.parametrize(
    "path",
    ["Makefile", "package.json", "pyproject.toml", "conftest.py", "setup.py", "Dockerfile", "docker-compose.yml",
     "src/env/bin.py", "environment.py", "agents.py", "agents/x.md", "docs/agents/README.md", ".gitignore",
     ".editorconfig", "promptdock.toml", "github/x.py", "model.pth", "lib/claude.py", "ci/test.sh", "vscode/x.ts",
     "README.md", "tsconfig.json", ".eslintrc.json", "Cargo.toml", "go.mod", "src/mise/a.go", "tests/profile.py"],
)  # fmt: skip
async def test_ordinary_files_are_written_without_a_question(path: str, builder: Ground) -> None:
    assert "error" not in await builder.call("create_file", path=path, content="x\n")


@pytest.mark.parametrize(
    "command",
    ["make test", ".venv/bin/pytest -x && .venv/bin/ruff check .", "source .venv/bin/activate; pytest",
     "timeout 60 node_modules/.bin/jest", "rm -rf node_modules __pycache__ .venv", "python -m venv .venv",
     "PATH=.venv/bin:$PATH pytest", "cat .github/workflows/ci.yml", "ls -la .github .vscode && head -5 .gitlab-ci.yml",
     "git diff --stat -- .github", "grep -rn node-version .github", "find . -name '*.py' -not -path './.venv/*'",
     "git commit -qm 'mention the agents and the rules'", "npm test", "npx tsc", "cargo build", "go test ./...",
     "echo $(.venv/bin/python -V)"],
)  # fmt: skip
async def test_ordinary_commands_are_run_without_a_question(command: str, builder: Ground) -> None:
    assert ASKED not in str((await builder.call("bash", command=command, timeout=5)).get("why"))
