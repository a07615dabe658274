"""What counts as more powerful: nothing that could allow more passes for less, however it is written."""

from __future__ import annotations

import itertools

import pytest

from shared.guard.permissions.compare import wider
from shared.guard.permissions.presets import Policies, Preset
from shared.guard.permissions.touching import KINDS, spelled
from shared.tools import catalog

STRICT = {"allow": 0, "ask": 1, "deny": 2}
PRESETS: tuple[Preset | None, ...] = (None, "locked", "standard", "builder", "guarded", "open")
RULES = ("tool:bash:.*", "tool:coding:.*", "(?s).*", "tool:git_push:origin main", "tool:view:secrets/.*")
DETAILS = ("", "secrets/key", "origin main", "ls", "ls; touch x", "a\nb")
TOUCHED = {tool.name: tool.touched() for tool in catalog.registry()} | {
    "mcp__x__y": ("tool:@widen:address",),
    "all": spelled(KINDS, reads=False),
    "magic": (),
}
TOOLS = [(tool.name, tool.category) for tool in catalog.registry()] + [
    ("mcp__x__y", "mcp"),
    ("all", "none"),
    ("magic", "none"),
]


def _some() -> list[Policies]:
    """Each preset with none, one or two rules of one's own, of every kind."""
    found = []
    for preset in PRESETS:
        found.append(Policies(preset=preset))
        for rule in RULES:
            found += [Policies(preset=preset, **{kind: [rule]}) for kind in ("deny", "allow", "ask")]
        found.append(Policies(preset=preset, deny=[RULES[0]], allow=[RULES[1]], ask=[RULES[4]]))
        found.append(Policies(preset=preset, deny=[RULES[0], RULES[4]], allow=[RULES[1]], ask=[RULES[4]]))
    return found


def test_what_passes_for_less_votes_at_least_as_strictly_on_every_action() -> None:
    policies = _some()
    sample = TOOLS[::9] + [tool for tool in TOOLS if tool[0] in ("bash", "view", "git_push", "run_command")]
    votes = [
        [STRICT[made.decide(*tool, [detail], TOUCHED[tool[0]]).vote] for tool in sample for detail in DETAILS]
        for made in (given.make("x", confined=True) for given in policies)
    ]
    narrower = 0
    for (old, before), (new, after) in itertools.product(zip(policies, votes, strict=True), repeat=2):
        if not wider(old, new):
            narrower += 1
            assert all(a >= b for a, b in zip(after, before, strict=True)), (old, new)
    assert narrower > 3 * len(policies)


@pytest.mark.parametrize("confined", [True, False])
def test_the_presets_stand_in_one_order_for_every_tool(confined: bool) -> None:
    for lower, higher in itertools.pairwise(PRESETS):
        below, above = (Policies(preset=name).make("x", confined) for name in (lower, higher))
        for tool in TOOLS:
            for detail in DETAILS:
                vote = STRICT[below.decide(*tool, [detail], TOUCHED[tool[0]]).vote]
                assert vote >= STRICT[above.decide(*tool, [detail], TOUCHED[tool[0]]).vote], (
                    lower,
                    higher,
                    tool,
                    detail,
                )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Policies(preset="standard"), Policies(preset="open")),
        (Policies(preset="standard"), Policies(preset="standard", allow=["(?s).*"])),
        (Policies(preset="standard"), Policies(preset="locked", allow=["tool:bash:.*"])),
        (Policies(preset="locked"), Policies(preset="locked", ask=["tool:bash:.*"])),
        (Policies(preset="locked"), Policies(preset=None, allow=["(?s)tool:.*"])),
        (Policies(preset="standard", deny=["tool:bash:.*"]), Policies(preset="standard")),
        (Policies(preset="standard", deny=["tool:bash:.*"]), Policies(preset="locked")),
        (Policies(preset="open", ask=["tool:git_push:.*"]), Policies(preset="open")),
        # Where the lower preset is silent about the name, a rule for the category decides alone.
        (Policies(preset="standard", allow=["tool:coding:.*"]), Policies(preset="locked", allow=["tool:coding:.*"])),
        (Policies(preset="standard"), Policies(preset="standard", approval_minutes=60)),
    ],
)  # fmt: skip
def test_what_may_allow_more_is_told_apart(old: Policies, new: Policies) -> None:
    assert wider(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Policies(preset="open"), Policies(preset="locked")),
        (Policies(preset="standard"), Policies(preset="standard", deny=["tool:bash:.*"])),
        (Policies(preset="builder", allow=["tool:bash:make"]), Policies(preset="standard")),
        (Policies(preset="standard", deny=["a"]), Policies(preset="locked", deny=["a", "b"])),
        (Policies(preset="standard", ask=["a"]), Policies(preset="standard", ask=["a"], deny=["b"])),
    ],
)
def test_what_allows_less_needs_nobody_s_power(old: Policies, new: Policies) -> None:
    assert wider(old, new) == ""
