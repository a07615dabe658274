"""Projects as they are listed, and one with what is in it."""

from __future__ import annotations

import pytest

from shared.client import Client
from shared.client.views import lookup, projects
from shared.errors import UsageError
from shared.store.records import Repo, Task, project_key

SHOP = project_key("shop")


async def test_all_are_listed_with_their_repositories_and_what_is_open(reader: Client) -> None:
    store = await reader.store()
    await store.insert(Repo(project_id=SHOP, name="web", kind="both", path="/srv/web"))
    for slug, status in (("calm-otter", "READY"), ("calm-ivy", "COMPLETED")):
        await store.insert(Task(slug=slug, project_id=SHOP, title=slug, status=status))
    listed = {
        card["id"]: (card["repositories"], card["open_tasks"]) for card in await projects.listing(reader)
    }
    assert listed == {"default": (0, 0), "shop": (1, 1)}
    card = await projects.card(reader, "shop")
    assert card["tasks"] == {"COMPLETED": 1, "READY": 1}
    assert [(repo["name"], repo["place"]) for repo in card["repositories"]] == [("web", "/srv/web")]


async def test_an_unknown_project_is_refused_with_those_that_there_are(reader: Client) -> None:
    with pytest.raises(UsageError, match="shop"):
        await projects.card(reader, "toys")
    assert (await projects.card(reader, "default"))["name"] == "Default"


async def test_a_conversation_works_on_default_until_it_is_told_otherwise(reader: Client) -> None:
    assert await projects.active(reader, "ada") == "default"


async def test_a_part_of_a_name_is_enough_and_a_url_is_whole(reader: Client) -> None:
    assert await lookup.project(reader, "sho") == "shop"
    assert await lookup.project(reader, "default") == "default"
    assert ("shop", "Shop") in await lookup.listed(reader, "project")
    assert await lookup.repo(reader, "https://host/x.git") == "https://host/x.git"
