"""Notes, the project's profile, and what is found again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.store.records import Memory, Note, Task, TaskResult, project_key
from shared.store.row import now
from shared.tools.knowledge import ranking
from tests.tools.bench import Bench

P = {"project_id": "default"}


async def test_a_note_is_written_read_listed_and_deleted(bench: Bench) -> None:
    made = await bench.ok("write_note", title="API / Design!", content="# The API\n\nuse REST\n", **P)
    assert made == {"path": "notes/api-design.md", "title": "The API", "status": "created"}
    assert (await bench.twice("write_note", title="api design", content="short", **P))["status"] == "updated"
    assert (await bench.ok("read_note", title="api-design.md", **P))["content"] == "short"
    [row] = (await bench.ok("list_notes", **P))["notes"]
    assert (row["name"], row["title"], row["size_bytes"]) == ("api-design.md", "api design", 5)
    assert (await bench.ok("delete_note", title="API design", **P))["deleted"] == "api-design"
    assert "no note" in await bench.no("read_note", title="API design", **P)
    for title in ("", "***", "../"):
        assert "no letter" in await bench.no("write_note", title=title, content="x", **P)


async def test_what_is_appended_is_there_once_even_when_the_call_is_repeated(bench: Bench) -> None:
    assert (await bench.twice("append_note", title="Ideas", content="first", **P))["status"] == "created"
    assert (await bench.twice("append_note", title="Ideas", content="second", **P))["status"] == "appended"
    assert (await bench.ok("read_note", title="Ideas", **P))["content"] == "# Ideas\n\nfirst\n\nsecond"
    [note] = await bench.store.select(Note)
    assert note.version == 2


async def test_a_promoted_note_is_a_section_of_the_profile_and_is_kept_up_to_date(bench: Bench) -> None:
    assert (await bench.ok("view_profile", **P))["content"] == ""
    await bench.ok("edit_project_profile", content="# Shop\n\nPython.\n", **P)
    await bench.ok("write_note", title="Rules", content="# Rules\n\nTest first.", **P)
    assert (await bench.twice("promote_note", title="Rules", **P))["changed"] is True
    await bench.ok("append_note", title="Rules", content="Small steps.", **P)
    await bench.ok("promote_note", title="Rules", **P)
    text = (await bench.ok("view_profile", **P))["content"]
    assert text.count("## Rules") == text.count("Test first.") == text.count("Small steps.") == 1
    assert text.startswith("# Shop\n\nPython.")
    told = await bench.ok("view_profile", **P)
    await bench.twice("edit_project_profile", content="new", **P)
    assert (await bench.ok("view_profile", **P))["version"] == told["version"] + 1


async def test_specs_and_notes_stand_side_by_side(bench: Bench) -> None:
    await bench.linked(
        "shop", **{"specs/login.md": "# Login\n", "specs/x.txt": "no\n", "plans/a.md": "# A\n"}
    )
    await bench.ok("write_note", title="Login", content="x", **P)
    told = await bench.ok("compare_specs_notes", **P)
    assert [spec["path"] for spec in told["specs"]] == ["shop/specs/login.md"]
    assert ([note["name"] for note in told["notes"]], told["specs_path"]) == (["login.md"], "specs")
    told = await bench.ok("compare_specs_notes", specs_path="plans", **P)
    assert [spec["name"] for spec in told["specs"]] == ["a.md"]
    assert "leads out" in await bench.no("compare_specs_notes", specs_path="../../..", **P)


async def _known(bench: Bench) -> None:
    own = project_key("default")
    await bench.ok("list_projects")
    task = Task(slug="calm-otter", project_id=own, title="Login page", status="COMPLETED", ended_at=now())
    await bench.store.upsert(
        [
            Memory(kind="fact", subject="payments", body="Payments are cached for an hour", project_id=own),
            Memory(kind="fact", subject="payments", body="payments are  CACHED for an hour", project_id=own),
            Memory(kind="fact", body="Payments were cached for a day", project_id=own, valid_to=now()),
            Memory(kind="fact", body="All projects cache nothing", scope="global"),
            task,
            TaskResult(task_id=task.id, summary="The session expires after caching"),
        ]
    )
    await bench.ok("write_note", title="Cooking", content="Pasta and tomatoes", **P)


async def test_memory_is_searched_by_words_in_any_form_the_best_first(bench: Bench) -> None:
    await _known(bench)
    told = await bench.ok("memory_search", query="how does the payment cache work?", top_k=3, **P)
    assert told["results"][0]["text"].casefold().startswith("payments are")
    assert (told["total"], len(told["results"])) == (4, 3)
    assert all("for a day" not in hit["text"] for hit in told["results"]), (
        "what was corrected is not recalled"
    )
    [hit] = (await bench.ok("memory_search", query="TOMATO", **P))["results"]
    assert (hit["kind"], hit["source"]) == ("note", "notes/cooking.md")
    assert (await bench.ok("memory_search", query="the and of", **P))["results"] == []
    await bench.ok("create_project", name="Other")
    told = await bench.ok("memory_search", query="cache payments", project_id="other")
    assert [hit["text"] for hit in told["results"]] == ["All projects cache nothing"]


async def test_memory_is_counted_and_compacted_without_losing_what_is_valid(bench: Bench) -> None:
    await _known(bench)
    old = Memory(kind="fact", body="a", project_id=project_key("default"), valid_to=now() + timedelta(days=1))
    await bench.store.insert(old)
    told = await bench.ok("memory_stats", **P)
    assert (told["memories"], told["superseded"], told["notes"], told["tasks"]) == ({"fact": 5}, 2, 1, 1)
    assert (await bench.ok("memory_reindex", **P))["reindexed"] == told["searchable"]
    told = await bench.twice("compact_memory", **P)
    assert (told["archived"], told["kept"]) == (2, 3)
    assert len(await bench.store.select(Memory, {"archived": False})) == 3


async def test_the_history_for_a_new_profile_is_handed_over(bench: Bench) -> None:
    await _known(bench)
    told = await bench.ok("regenerate_profile", **P)
    assert told["regenerated"] is False
    assert [entry["title"] for entry in told["history"]] == ["Login page"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("caching", "cached"), ("running", "runs"), ("policies", "policy"), ("userNames", "user name")],
)
def test_forms_of_a_word_have_the_same_stem(one: str, other: str) -> None:
    assert ranking.stems(one) == ranking.stems(other)


def test_a_rare_word_counts_more_than_a_frequent_one_and_a_short_text_more_than_a_long_one() -> None:
    texts = ["blue car", "blue boat", "blue " + "filler " * 50, "red boat"]
    assert [place for place, _ in ranking.rank("blue boat", texts)] == [1, 3, 0, 2]
    assert ranking.rank("", texts) == ranking.rank("boat", []) == []


async def test_the_tools_of_rules_say_what_took_their_place(bench: Bench) -> None:
    for tool in ("browse_rules", "load_rule", "save_rule", "delete_rule"):
        told = await bench.ok(tool)
        assert told["deprecated"] is True
        assert "edit_project_profile" in told["message"]
