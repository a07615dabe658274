"""Secrets in what tools tell a model: at a cut, apart by what is not seen, in names and in pieces."""

from __future__ import annotations

import pytest

from shared.redaction import hide
from shared.tools.files.coding import STDOUT
from tests.attacks.ground import Ground, git

SECRET = "sk-ant-api03-Tg5Hy8Jk2Ls9Dw4Ef7Rb"
PART = SECRET[13:21]


@pytest.fixture(autouse=True)
def known() -> None:
    hide(SECRET)


@pytest.mark.parametrize("before", [5, 15, 25])
async def test_nothing_of_a_secret_is_left_where_output_is_cut(before: int, builder: Ground) -> None:
    """Once where the head ends, once where the tail begins."""
    half = STDOUT // 2
    for text, part in (
        ("x" * (half - before) + SECRET + "y" * STDOUT, SECRET[:before]),
        ("x" * STDOUT + SECRET + "y" * (half - before), SECRET[-before:]),
    ):
        (builder.root / "long.txt").write_text(text)
        result = await builder.call("bash", command="cat long.txt")
        assert "left out" in str(result) and "[hidden]" in str(result)
        assert part not in str(result)


@pytest.mark.parametrize(
    "command",
    ["base64 k", "base64 -w 8 k", "fold -w 5 k", "sed 's/./& /g' k", "xxd -p -c 7 k || od -An -tx1 -v k",
     "od -An -tx1 -v k", "od -An -c -v -w8 k", "rev k", "tr a-z A-Z < k", "sed 's/./&\\x1b[1m/g' k",
     "python3 -c \"print('\\u200b'.join(open('k').read()))\"", "cat k k k | base32 | base32 -d",
     "cat k | tee /dev/stderr", "printf 'a%s' \"$(cat k)\"", "cat k | tr '\\n' '\\0'"],
)  # fmt: skip
async def test_a_command_that_spells_a_secret_otherwise_tells_it_to_no_model(
    command: str, builder: Ground
) -> None:
    (builder.root / "k").write_text(f"key={SECRET}\n")
    result = await builder.call("bash", command=command, timeout=20)
    assert result["exit_code"] == 0 and "[hidden]" in str(result), result
    assert PART not in str(result) and PART.upper() not in str(result) and PART[::-1] not in str(result)


async def test_a_secret_in_a_name_is_hidden_wherever_names_are_told(builder: Ground) -> None:
    (builder.root / f"{SECRET}.txt").write_text("x\n")
    git(builder.root, "add", ".")
    git(builder.root, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", f"use {SECRET}")
    git(builder.root, "branch", SECRET)
    for tool, more in (
        ("list_directory", {}), ("glob_files", {"pattern": "*.txt"}), ("view", {"path": f"{SECRET}.txz"}),
        ("grep", {"pattern": "x", "output_mode": "files_with_matches"}), ("bash", {"command": "git log; git branch"}),
    ):  # fmt: skip
        result = str(await builder.call(tool, **more))
        assert SECRET not in result and PART not in result, tool
        assert "[hidden]" in result or tool == "view", tool
