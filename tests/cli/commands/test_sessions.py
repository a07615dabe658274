"""Conversations from the command line."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.person import Person
from tests.support.processes import until

AS = ("--user", "sue")


def _listed(cluster: Person, *more: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cluster.reads("sessions", "list", *more, *AS)["sessions"]
    return found


def test_a_conversation_is_found_named_forked_and_put_away(cluster: Person) -> None:
    assert "no conversation yet" in cluster.types("sessions", *AS).stderr
    cluster.does("ask", "The lighthouse is painted red.", *AS, "--session", "sue-light")
    (card,) = until(lambda: _listed(cluster), what="the conversation")
    assert card["title"] == "The lighthouse is painted red."
    until(lambda: len(cluster.reads("sessions", "show", "sue-light", *AS)["messages"]) == 2)
    assert "The lighthouse is painted red." in cluster.does("sessions", "show", "light", *AS)
    (found,) = cluster.reads("sessions", "search", "lighthouses", *AS)["sessions"]
    assert (found["session_id"], found["found"]) == ("sue-light", "The lighthouse is painted red.")
    told = cluster.does("sessions", "rename", "sue-light", "The", "red", "tower", *AS)
    assert told == "sue-light is called The red tower\n"
    fork = cluster.does("sessions", "fork", "sue-light", "--at", "#1", *AS).strip()
    said = cluster.reads("sessions", "show", fork, *AS)
    assert said["title"] == "The red tower (fork)" and len(said["messages"]) == 1
    cluster.does("ask", "And the door?", *AS, "--session", fork)
    until(lambda: len(cluster.reads("sessions", "show", fork, *AS)["messages"]) == 3)
    assert "--undo" in cluster.does("sessions", "archive", fork, *AS)
    assert [one["session_id"] for one in _listed(cluster)] == ["sue-light"]
    assert [one["session_id"] for one in _listed(cluster, "--archived")] == [fork]
    cluster.does("sessions", "archive", "--undo", fork, *AS)
    new = cluster.does("sessions", "new", "The", "quay", *AS).strip()
    assert _listed(cluster)[0]["session_id"] == new


def test_another_persons_conversation_is_refused_whatever_is_asked(cluster: Person) -> None:
    cluster.does("ask", "It is a secret.", *AS, "--session", "sue-secret")
    until(lambda: [one for one in _listed(cluster) if one["session_id"] == "sue-secret"])
    for words in (("show",), ("rename", "x"), ("archive",), ("fork",), ("export",)):
        verb, *more = words
        told = cluster.is_refused(6, "sessions", verb, "sue-secret", *more, "--user", "eve")
        assert "somebody else's" in told
    assert cluster.reads("sessions", "search", "secret", "--user", "eve")["sessions"] == []


def test_what_was_exported_is_imported_and_a_broken_file_loses_nothing(cluster: Person) -> None:
    lines = [
        {"role": "user", "content": f"line {number} " + "ü" * 300, "id": f"m{number}"}
        for number in range(400)
    ]
    given: dict[str, Any] = {
        "title": "Long",
        "messages": [{**one, "timestamp": "2026-01-02T03:04:05Z"} for one in lines],
    }
    (cluster.folder / "long.json").write_text(json.dumps(given))
    key = cluster.does("sessions", "import", "long.json", *AS).strip()
    cluster.does("sessions", "export", key, "--to", "again.json", *AS)
    assert json.loads((cluster.folder / "again.json").read_text()) == given
    assert "is called" not in cluster.is_refused(2, "sessions", "export", key, "--to", "again.json", *AS)
    assert "# Long\n\n## user · 2026-01-02 03:04 UTC\n\nline 0 ü" in cluster.does(
        "sessions", "export", key, "--format", "markdown", *AS
    )
    before = _listed(cluster)
    given["messages"][399]["role"] = "boss"
    (cluster.folder / "broken.json").write_text(json.dumps(given))
    assert "message 400 role" in cluster.is_refused(2, "sessions", "import", "broken.json", *AS)
    (cluster.folder / "broken.json").write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in cluster.is_refused(2, "sessions", "import", "broken.json", *AS)
    assert _listed(cluster) == before


def test_what_is_saved_is_listed_and_taken_up_again(cluster: Person) -> None:
    cluster.does("ask", "The boat is green.", *AS, "--session", "sue-boat")
    cluster.does("sessions", "save", "the", "boat", "--session", "sue-boat", *AS)
    (row,) = until(lambda: cluster.reads("sessions", "saved", *AS)["saved"], what="what was saved")
    assert (row["description"], row["session_id"]) == ("the boat", "sue-boat")
    part = cluster.is_refused(2, "sessions", "clear", "--session", "boat", *AS)
    assert "did you mean sue-boat?" in part, "a wrong guess would hide another conversation's words"
    assert "Cleared" in cluster.does("sessions", "clear", "--session", "sue-boat", *AS)
    nobody = cluster.is_refused(2, "sessions", "restore", row["id"], "--session", "sue-ship", *AS)
    assert "there is no conversation 'sue-ship'" in nobody, "none begins by a slip"
    cluster.does("sessions", "restore", row["id"], "--session", "sue-boat", *AS)
