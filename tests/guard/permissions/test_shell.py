"""Shell text: a permission for one command is none for what hangs on it."""

from __future__ import annotations

import pytest

from shared.guard.permissions import shell
from shared.guard.permissions.policy import policy

GIT = policy(
    "git", allow=[r"tool:bash:git (status|log|diff|branch)( .*)?", r"tool:bash:(ls|cat|grep|head)( .*)?"]
)
NO_RM = policy("no-rm", deny=[r"tool:bash:rm( .*)?"], allow=["(?s)tool:bash:.*"])


def vote(command: str) -> str:
    return GIT.decide("bash", "coding", (command,)).vote


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git log -3 --oneline",
        "git status && git log -1",
        "git log | head -5",
        "git diff 2>/dev/null",
        "(git status; ls)",
        "{ git status; }",
        "! git diff",
        "cat 'a file.txt'",
        'grep "def main" src/a.py',
        "ls -la src/",
        "git log 2>&1 | grep fix",
        "git log |& grep fix",
        "git status &",
    ],
)
def test_plain_commands_are_judged_each_by_itself(command: str) -> None:
    assert vote(command) == "allow"


@pytest.mark.parametrize(
    "command", ["git push", "touch x", "git status; touch x", "ls && touch x", "ls | tee x"]
)
def test_one_command_without_leave_denies_the_line(command: str) -> None:
    assert vote(command) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "git log $(whoami)", "git log `id`", "ls $HOME", "ls *", "cat ~/x", "git status > x", "cat < x", "cat <<E\nE",
        "for x in a; do ls; done", "if ls; then ls; fi", "f() { ls; }", "A=1 git status", "ls {a,b}",
        'ls "a\\b"', "ls\nls", "ls\tx\rls", "ls \u202etxt", "ls \u200b", "git -c a=b log", "git --exec-path=x log",
        "git log --output=x", "git log --out=x", "git diff --ext-diff", "ls 'unclosed", "", "   ", "# nothing",
        "ls " + "x" * 40_000, "git 'log' $'x'", "ls ${x}", "[[ -f x ]]", "ls; (( x ))", "a=b", "cat <(ls)",
        "coproc ls", "git log -p '--output'=x", "git grep -O x", "git grep -Oless x",
    ],
)  # fmt: skip
def test_what_cannot_be_judged_by_reading_is_never_allowed(command: str) -> None:
    assert vote(command) != "allow"


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf x", "ls; rm x", "/bin/rm x", "sudo rm x", "env rm x", "bash -c 'rm x'", "nice -n 5 rm x",
        "timeout 3 rm x", "xargs rm x", "echo $(rm x)", "sh -c 'ls; rm x'", "find . -exec rm {} +", "'rm' x",
        "time rm x", "command rm x", "busybox rm x", "r''m x", "eval 'rm x'", "(rm x)", "{ rm x; }", "ls || rm x",
        "if true; then rm x; fi", "while rm x; do :; done", "cat <(rm x)", "f() { rm x; }; f", "rm x &",
    ],
)  # fmt: skip
def test_a_forbidden_command_is_found_wherever_it_hides_in_plain_sight(command: str) -> None:
    assert NO_RM.decide("bash", "coding", (command,)).vote == "deny"


@pytest.mark.parametrize("command", ["echo rm", "ls; echo done", "make test | tee log > out"])
def test_a_grant_of_the_tool_as_such_needs_no_judgement(command: str) -> None:
    assert NO_RM.decide("bash", "coding", (command,)).vote == "allow"


def test_a_nul_is_denied_whoever_allows_what() -> None:
    everything = policy("open", allow=["(?s)tool:.*"])
    assert everything.decide("bash", "coding", ("git status\0;touch x",)).vote == "deny"


@pytest.mark.parametrize("text", ["(" * 20_000, "$(" * 5_000, "'" * 9_999, "\ud800", "{" * 3000, "`" * 999])
def test_no_text_makes_the_parser_fail(text: str) -> None:
    assert shell.read(text).doubts


def test_the_commands_of_a_line_are_spelled_the_one_way() -> None:
    assert shell.read("git   'log'  -3 && \"ls\" -l").commands == ("git log -3", "ls -l")
