"""Notes by the names that people type."""

from __future__ import annotations

import pytest

from shared.client import Client
from shared.client.views import notes
from shared.errors import UsageError
from shared.store.records import Note, project_key


@pytest.fixture
async def written(reader: Client) -> Client:
    store = await reader.store()
    for slug, title, body in (
        ("paint-it-green", "Paint it green", "# A green shed\nThe shed is to be green.\nThe door stays."),
        ("paint-the-door", "Paint the door", "Later."),
        ("first-thoughts", "Where the path goes", "Round the pond."),
    ):
        await store.insert(Note(project_id=project_key("shop"), slug=slug, title=title, body=body))
    return reader


async def test_a_note_is_meant_by_its_title_its_name_or_a_part_of_it(written: Client) -> None:
    for typed in ("paint it GREEN", "paint-it-green.md", "green"):
        assert await notes.named(written, "shop", typed) == "paint-it-green"
    assert await notes.named(written, "shop", "Where the path goes") == "first-thoughts"
    with pytest.raises(UsageError, match="part of several"):
        await notes.named(written, "shop", "paint")


async def test_a_search_shows_the_line_that_holds_the_words_and_no_heading(written: Client) -> None:
    [found] = await notes.search(written, "shop", "green shed", 5)
    assert (found["name"], found["line"]) == ("paint-it-green", "The shed is to be green.")


async def test_a_project_that_was_never_used_has_no_notes(reader: Client) -> None:
    assert await notes.names(reader, "default") == []
    assert await notes.search(reader, "default", "green", 5) == []
