"""Commands: what hangs on an allowed one gets no permission, and what gets permission stays in the sandbox."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from shared.guard.permissions.policy import Policy, policy
from shared.guard.sandbox.sandbox import Sandbox
from tests.attacks.ground import CANARY, HOSTILE, Ground, whole

COMMANDS: list[dict[str, Any]] = HOSTILE["commands"]
IDS = [ascii(row["command"])[:60] for row in COMMANDS]
# What somebody writes who thinks of the first word alone.
CARELESS = (
    r"(?s)tool:bash:(git|pwd|find|sort|awk|nice|timeout|set|cd|test|sed|tar|make|split|printf|echo|time|env|xargs"
    r"|let|perl|python3|mapfile|if|for|while|case|source|\.)( .*|$)"
)
# Those that fail by themselves on some machines; that they can do harm at all is shown by the others.
WORKING = [row["command"] for row in COMMANDS if row["works"]]
ESSENTIAL = 60
TRIED = 45  # in the sandbox


@pytest.fixture
def careless(workspace: Path, strongest: Sandbox) -> Ground:
    rules: Policy = policy("careless", allow=[CARELESS], deny=["tool:bash:touch( .*)?"])
    return Ground(workspace, rules, strongest)


def test_most_of_them_do_harm_where_nothing_stands_in_their_way(workspace: Path, tmp_path: Path) -> None:
    """The proof that the other tests here can fail: run by hand, they leave the canary."""
    harmful, canary = 0, workspace / "CANARY"
    for command in WORKING:
        subprocess.run(
            ["bash", "-c", command],
            cwd=workspace,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        )
        harmful += canary.exists()
        canary.unlink(missing_ok=True)
    assert harmful >= ESSENTIAL, f"only {harmful} of {len(WORKING)}"


@pytest.mark.parametrize("command", [row["command"] for row in COMMANDS], ids=IDS)
async def test_a_rule_for_the_first_word_allows_nothing_behind_it(command: str, careless: Ground) -> None:
    result = await careless.call("bash", command=command)
    assert "error" in result and careless.decisions in (["deny"], []), result
    assert not (careless.root / "CANARY").exists()


async def test_the_same_rule_allows_what_it_means(careless: Ground) -> None:
    assert (await careless.call("bash", command="git status"))["exit_code"] == 0
    assert (await careless.call("bash", command="cd src && git log -1 | sort"))["exit_code"] == 0
    assert careless.decisions == ["allow", "allow"]


async def test_where_they_are_allowed_the_sandbox_keeps_them_in(builder: Ground, canary: Path) -> None:
    """The canary's place is now outside of the workspace, and so is what the command may not read."""
    place = builder.root.parent / "CANARY"
    script = builder.root / "p.sh"
    script.write_text(f"#!/bin/sh\ntouch {place}\ncat\n")
    tried = [row for row in COMMANDS[:TRIED] if "\0" not in row["command"]]
    for row in tried:
        command = row["command"].replace("CANARY", str(place))
        result = await builder.call("bash", command=command, timeout=10)
        assert "exit_code" in result or "not allowed" in str(result), (command, result)
        assert not place.exists(), command
    assert whole(canary)
    assert builder.decisions.count("allow") > len(tried) * 0.9


@pytest.mark.parametrize(
    "command",
    ["cat ../outside.txt", "cat {}", "ls -la .. | cat", "tail -n1 ../outside.txt",
     "ln -s {} x; cat x; cp -L x y; cat y", "ln {} x; cat x", "cat /proc/self/root{} /proc/1/root{} /proc/*/root{}",
     "cat /proc/self/cwd/../outside.txt /proc/1/cwd/../outside.txt", "tar cf - -C .. outside.txt",
     "unshare -Urm sh -c 'mount --bind / /mnt; cat /mnt{}'", "unshare -Ur chroot /proc/1/root cat {}",
     "find ../.. -name outside.txt | xargs cat", "git diff --no-index /dev/null {}",
     "git hash-object -w {} | xargs git cat-file -p", "git -C .. grep --no-index CANARY",
     "python3 -c 'import os; print(os.pread(os.open(\"..\", 0), 9, 0))'; grep -r CANARY ..",
     "nsenter -t 1 -m cat {}", "cat < {}; read -r line < {}; echo $line; mapfile x < {}; echo ${x[0]}",
     "sed -n p {}; awk 1 {}; diff {} f; od -c {} | head", "echo 'include {}' > m; make -f m",
     "printf '.. code::\\n' | env -i cat - {}", "bash --rcfile {} -ic true; sh {}"],
)  # fmt: skip
async def test_nothing_outside_is_read(command: str, builder: Ground, canary: Path) -> None:
    result = await builder.call("bash", command=command.replace("{}", str(canary)))
    assert CANARY not in str(result) and "exit_code" in result


async def test_endless_output_is_cut_and_ended(builder: Ground) -> None:
    result = await builder.call("bash", command="yes", timeout=1)
    assert result["timed_out"] and result["truncated"] and len(result["stdout"]) < 10_000
