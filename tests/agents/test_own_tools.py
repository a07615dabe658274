"""Chatter's five tools as they were agreed, word by word: what the model reads decides when it calls them."""

from __future__ import annotations

from typing import Any

import pytest

from shared.tools.catalog import registry

AGREED: dict[str, tuple[str, dict[str, str], list[str]]] = {
    "consult_planner": (
        "Ask the Planner agent to create a project plan, break down tasks, or coordinate work between agents. "
        "Use this when you need strategic planning or task delegation.",
        {
            "question": "The question or request for the Planner",
            "context": "Any relevant context (user's previous messages, project state, etc.)",
            "priority": "Priority level for this request",
        },
        ["question"],
    ),
    "consult_researcher": (
        "Ask the Researcher agent to analyze existing code, check for conflicts, or validate integration points. "
        "Use this when you need to understand what already exists in the codebase.",
        {
            "question": "What to research or analyze",
            "repos": "Which repositories to analyze",
            "focus_areas": "Specific areas to focus on (e.g., 'auth patterns', 'database schema', 'API routes')",
        },
        ["question", "repos"],
    ),
    "assign_task": (
        "Assign a specific implementation task to Frontend or Backend worker. Only use this after Planner has "
        "approved the task and Researcher has validated there are no conflicts.",
        {
            "agent": "Which worker to assign the task to",
            "command_file": "The complete command file content in markdown format",
        },
        ["agent", "command_file"],
    ),
    "check_agent_status": (
        "Check if an agent is online and what it's currently working on",
        {"agent": "Agent name (e.g., 'frontend', 'backend', 'planner')"},
        ["agent"],
    ),
    "escalate_to_human": (
        "When there's ambiguity, conflict, or a decision that requires human judgment, use this to ask the user "
        "directly",
        {
            "question": "The question for the human",
            "options": "Possible options or paths forward",
            "context": "Why this requires human input",
        },
        ["question", "context"],
    ),
}


@pytest.mark.parametrize("name", AGREED)
def test_the_model_reads_what_was_agreed(name: str) -> None:
    description, parameters, required = AGREED[name]
    tool = registry().get(name)
    schema: dict[str, Any] = tool.schema
    assert " ".join(tool.description.split()) == description
    told = {field: schema["properties"][field].get("description") for field in parameters}
    assert told == parameters
    assert sorted(schema["required"]) == sorted(required)
