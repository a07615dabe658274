"""Rules: what matches votes, the stricter holds, and where nobody votes the answer is no."""

from __future__ import annotations

import time

import pytest

from shared.errors import ConfigurationError
from shared.guard.permissions.policy import Policy, literal, policy
from shared.guard.permissions.presets import Policies, preset
from shared.tools.catalog import registry


def vote(rules: Policy, tool: str, detail: str = "", category: str = "none") -> str:
    """The vote on a tool, as it is called with nothing special."""
    return rules.decide(tool, category, (detail,)).vote


def test_what_no_rule_names_is_denied() -> None:
    ruling = policy("empty").decide("view", "coding", ("a.py",))
    assert ruling.vote == "deny" and "no rule" in ruling.why


def test_deny_comes_before_allow_and_allow_before_ask() -> None:
    both = policy("p", deny=["tool:x:a"], allow=["tool:x:[ab]"], ask=["tool:x:[abc]"])
    assert [vote(both, "x", detail) for detail in "abcd"] == ["deny", "allow", "ask", "deny"]


def test_a_rule_must_match_the_whole_action() -> None:
    rules = policy("p", allow=["tool:view:src/.*"])
    assert vote(rules, "view", "src/a.py") == "allow"
    assert vote(rules, "view", "x/src/a.py") == "deny"
    assert vote(rules, "preview", "src/a.py") == "deny"


def test_of_name_and_category_the_stricter_holds_and_silence_has_no_vote() -> None:
    rules = policy("p", allow=["tool:files:.*"], ask=["tool:edit_file:.*"], deny=["tool:system:.*"])
    assert vote(rules, "read_file", "a", "files") == "allow"
    assert vote(rules, "edit_file", "a", "files") == "ask"
    assert vote(rules, "edit_file", "a", "system") == "deny"


def test_each_spelling_of_a_detail_is_judged() -> None:
    rules = policy("p", deny=["tool:view:secret/.*"], allow=["tool:view:.*"])
    assert rules.decide("view", "coding", ("a/../secret/x", "secret/x")).vote == "deny"


def test_a_dot_matches_a_line_break_only_where_the_pattern_says_so() -> None:
    assert vote(policy("p", allow=["tool:x:.*"]), "x", "a\nb") == "deny"
    assert vote(policy("p", allow=["(?s)tool:x:.*"]), "x", "a\nb") == "allow"


@pytest.mark.parametrize(
    "pattern", ["tool:(", "tool:x:(?=a)", r"tool:(x):\1", "tool:x:a{5000}", "x" * 2001, "[z-a]"]
)
def test_one_pattern_that_cannot_be_used_refuses_the_whole_policy(pattern: str) -> None:
    with pytest.raises(ConfigurationError):
        policy("p", allow=["tool:x:.*", pattern])
    with pytest.raises(ValueError, match="cannot be used"):
        Policies(ask=[pattern])


def test_no_pattern_takes_long_whatever_the_text_is() -> None:
    rules = policy("p", allow=["tool:x:(a+)+$", "tool:x:(a|aa)+b"])
    began = time.process_time()  # of ours alone: others may have the machine
    assert vote(rules, "x", "a" * 100_000 + "!") == "deny"
    assert time.process_time() - began < 1


@pytest.mark.parametrize("text", ["a.b*c", "git push; rm -rf /", "x\ny", "\ud800", "é\u202e", "(?s).*"])
def test_a_literal_matches_its_text_and_nothing_else(text: str) -> None:
    rules = policy("p", allow=[f"tool:x:{literal(text)}"])
    assert vote(rules, "x", text) == "allow"
    assert vote(rules, "x", f"{text}x") == vote(rules, "x", f"x{text}") == "deny"


def test_rules_of_ones_own_stand_before_those_of_a_preset() -> None:
    made = Policies(preset="standard", deny=["tool:create_task:.*"], allow=["tool:bash:make test"]).make(
        "own", False
    )
    assert vote(made, "create_task", "x") == "deny"
    assert vote(made, "bash", "make test") == "allow"
    assert vote(made, "bash", "make deploy") == "ask"
    assert vote(made, "list_tasks") == "allow"


def test_every_tool_is_judged_by_every_preset_on_purpose() -> None:
    """What a tool touches has a vote in each of them, whatever it is called with."""
    standard, guarded = preset("standard"), preset("guarded")
    judged = [t for t in registry() if not t.personal]  # those are for people alone: no rules judge them
    forgotten = [t.name for t in judged if vote(standard, t.name, "x", t.category) == "deny"]
    assert forgotten == []
    assert [t.name for t in judged if vote(guarded, t.name, "x", t.category) == "deny"] == []


def test_locked_reads_and_does_nothing_else() -> None:
    """What it allows is registered as reading only."""
    locked = preset("locked")
    for tool in registry():
        if vote(locked, tool.name, "x", tool.category) != "deny":
            assert tool.reads_only, f"{tool.name} writes"


@pytest.mark.parametrize(
    ("tool", "detail"),
    [
        ("bash", "ls"),
        ("run_command", "ls"),
        ("git_push", "push origin main"),
        ("git_merge", "merge x"),
        ("git_create_pr", "pr"),
        ("delete_task", "x"),
        ("delete_project", "x"),
        ("self_edit_permissions", "permissions:open"),
        ("self_edit_system_prompt", "prompt"),
        ("mcp__github__search", "github/search"),
    ],
)
def test_standard_asks_before_what_cannot_be_undone(tool: str, detail: str) -> None:
    assert vote(preset("standard"), tool, detail) == "ask"
    assert vote(preset("open"), tool, detail) == "allow"


def test_a_builder_runs_commands_only_where_a_sandbox_has_no_network() -> None:
    assert vote(preset("builder", confined=True), "bash", "pytest -q") == "allow"
    assert vote(preset("builder", confined=False), "bash", "pytest -q") == "ask"
    assert vote(preset("builder", confined=True), "git_push", "push origin x") == "ask"


def test_guarded_asks_only_for_what_leaves_the_machine_or_widens_what_is_open() -> None:
    guarded = preset("guarded")
    for tool in ("bash", "git_merge", "delete_task", "pause_agent", "edit_task"):
        assert vote(guarded, tool, "x") == "allow", tool
    for tool in ("git_push", "add_repo", "set_day_budget", "approve_task", "create_profile", "create_hook"):
        assert vote(guarded, tool, "x") == "ask", tool


def test_a_preset_denies_what_touches_nothing_that_it_knows() -> None:
    standard = preset("standard")
    assert standard.decide("magic", "none", ("x",), ()).vote == "deny"
    assert standard.decide("magic", "none", ("x",)).vote == "ask", "nobody said what it touches"
    assert standard.decide("magic", "none", ("x",), ("tool:@widen:address",)).vote == "ask"
    locked = preset("locked")
    assert locked.decide("magic", "none", ("x",), ("tool:@read:files", "tool:@widen:address")).vote == "deny"
    assert locked.decide("magic", "none", ("x",), ("tool:@read:files",)).vote == "allow"


def test_the_strictest_vote_on_what_a_call_touches_holds() -> None:
    touched = ("tool:@change:records", "tool:@widen:money")
    assert preset("standard").decide("edit_task", "core", ("x",), touched).vote == "ask"
    assert preset("standard").decide("edit_task", "core", ("x",), touched[:1]).vote == "allow"


def test_rules_that_people_write_know_names_and_categories_alone() -> None:
    touched = ("tool:@change:records",)
    assert policy("p", allow=["tool:@change:.*"]).decide("x", "y", ("",), touched).vote == "deny"
    made = Policies(preset="standard", deny=["tool:@change:.*"]).make("own", False)
    assert made.decide("x", "y", ("",), touched).vote == "allow"
    made = Policies(preset="standard", allow=["tool:git_push:.*"], deny=["tool:core:.*"]).make("own", False)
    assert made.decide("git_push", "git", ("push",), ("tool:@widen:address",)).vote == "allow"
    assert made.decide("edit_task", "core", ("x",), touched).vote == "deny"


def test_a_tool_that_is_always_denied_is_hidden_and_no_other() -> None:
    rules = policy("p", allow=["tool:view:src/.*"], ask=["tool:bash:make .*"], deny=["tool:grep:.*"])
    hidden = [name for name in ("view", "bash", "grep", "delete_task") if rules.hides(name, "none")]
    assert hidden == ["grep", "delete_task"]
    assert not policy("q", allow=["tool:(view|gr[e]p):x"]).hides("grep", "none")


def test_an_unknown_preset_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigurationError, match="standard"):
        preset("lax")
