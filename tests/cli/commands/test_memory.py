"""Memory from the command line."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.person import Person
from tests.support.processes import until

AS = ("--user", "mem")


def test_what_was_said_is_listed_found_explained_and_forgotten(cluster: Person) -> None:
    assert "Nothing is remembered of mem yet" in cluster.types("memory", "list", *AS).stderr
    cluster.does("ask", "The harbour festival takes place in Lisbon.", *AS, "--session", "mem-one")

    def listed() -> list[dict[str, Any]]:
        return [one for one in cluster.reads("memory", *AS)["memories"] if "Lisbon" in one["text"]]

    (said, *_) = until(listed, what="the turn among the memories")
    cluster.does("ask", "Where is the harbour festival?", *AS, "--session", "mem-two")
    until(lambda: cluster.reads("memory", "why", *AS)["remembered"], what="the steps of the answer")
    assert "Lisbon" in cluster.does("memory", "why", *AS)
    for where in (("--session", "mem-one"), ()):
        found = cluster.reads("memory", "search", "harbour", "festival", *AS, *where)["found"]
        assert any("Lisbon" in one["text"] and one["session_id"] == "mem-one" for one in found)
    assert "somebody else's" in cluster.is_refused(6, "memory", "search", "x", "--session", "mem-one")
    short = said["id"][:8]
    assert "Lisbon" in cluster.does("memory", "show", short, *AS)
    assert "--yes" in cluster.is_refused(2, "memory", "forget", short, *AS)
    assert cluster.does("memory", "forget", short, "--yes", *AS) == f"{short} is forgotten\n"
    assert "Lisbon" not in json.dumps(
        [one for one in cluster.reads("memory", *AS)["memories"] if one["id"] == said["id"]]
    )


def test_a_project_is_shared_by_a_word_and_unshared(cluster: Person) -> None:
    cluster.does("project", "create", "Quay")
    assert "all who work in it" in cluster.does("memory", "share", "quay")
    assert "alone" in cluster.does("memory", "share", "quay", "--off")
    assert "cannot be shared" in cluster.is_refused(1, "memory", "share", "default")
