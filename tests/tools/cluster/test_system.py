"""How things stand, what happened and what it cost; prompts, messages and the cluster's switches."""

from __future__ import annotations

from typing import Any

from shared.store.records import Project, Prompt, Task, TokenUsage, project_key
from tests.tools.bench import Bench


class Cluster:
    """What was asked of the other agents."""

    def __init__(self, hear: int = 1) -> None:
        self.hear, self.asked = hear, list[tuple[str, ...]]()

    async def post(self, channel: str, text: str, key: str) -> int:
        self.asked.append((channel, text, key))
        return self.hear

    async def restart(self, reason: str) -> int:
        self.asked.append(("restart", reason))
        return 5


async def test_the_overview_counts_what_there_is(bench: Bench) -> None:
    made = (await bench.ok("create_task", title="x"))["created"]
    await bench.ok("create_agent", name="smith")
    told = await bench.ok("get_status")
    assert (told["projects"], told["tasks"]["total"], told["tasks"]["by_status"]) == (1, 1, {"READY": 1})
    assert [task["id"] for task in told["tasks"]["ready_to_work"]] == [made]
    assert (told["agents"], told["orchestrator_paused"]) == ([{"name": "smith", "state": "offline"}], False)


async def test_the_newest_events_come_first(bench: Bench) -> None:
    made = (await bench.ok("create_task", title="x"))["created"]
    await bench.ok("stop_task", task_id=made)
    await bench.ok("create_project", name="Shop")
    told = (await bench.ok("get_recent_events", limit=3))["events"]
    assert [event["event"] for event in told] == ["project_created", "stopped", "created"]
    assert (told[1]["task_id"], told[1]["from"], told[1]["to"]) == (made, "READY", "BLOCKED")
    assert (told[0]["project_id"], told[0]["task_id"]) == ("shop", None)


async def test_usage_is_added_up_by_project_task_and_agent(bench: Bench) -> None:
    made = (await bench.ok("create_task", title="x"))["created"]
    [task] = await bench.store.select(Task)
    shop = Project(slug="shop", name="Shop")
    calls = [("backend", task.id, None), ("backend", task.id, None), ("planner", None, shop.id)]
    rows = [
        TokenUsage(agent=agent, model="m", task_id=id, project_id=owner, input=10, output=5, cost=0.25)
        for agent, id, owner in calls
    ]
    await bench.store.upsert([shop, *rows])
    told = await bench.ok("get_token_usage")
    assert (told["total"]["tokens"], told["total"]["cost"], told["total"]["calls"]) == (45, 0.75, 3)
    assert {row["project_id"]: row["calls"] for row in told["breakdown"]} == {"default": 2, "shop": 1}
    told = await bench.ok("get_token_usage", task_id=made)
    assert [(row["agent"], row["input"]) for row in told["breakdown"]] == [("backend", 20)]
    told = await bench.ok("get_token_usage", project_id="default")
    assert [(row["task_id"], row["agent"]) for row in told["breakdown"]] == [(made, "backend")]


async def test_the_scheduler_is_paused_and_resumed(bench: Bench) -> None:
    assert (await bench.ok("orchestrator_control", action="status"))["status"] == "running"
    assert (await bench.twice("orchestrator_control", action="pause"))["status"] == "paused"
    assert (await bench.ok("get_status"))["orchestrator_paused"] is True
    assert (await bench.ok("orchestrator_control", action="resume"))["status"] == "running"
    assert "cannot take" in await bench.no("orchestrator_control", action="stop")


async def test_the_cluster_is_restarted_with_a_reason(bench: Bench) -> None:
    assert "no cluster" in await bench.no("restart_daemon", reason="new release")
    cluster = Cluster()
    told = await bench.run("restart_daemon", reason="new release", here={"cluster": cluster})
    assert (told["heard_by"], cluster.asked) == (5, [("restart", "new release")])


async def test_a_message_goes_into_the_conversation_or_to_a_channel(bench: Bench) -> None:
    assert (await bench.ok("send_message", content="hello"))["sent"] is True
    assert bench.said == ["hello"]
    cluster = Cluster(hear=1)
    told = await bench.run(
        "send_message", content="hi", channel_id="77", step="t1.5", here={"cluster": cluster}
    )
    assert cluster.asked == [("discord:77", "hi", "t1.5")]
    assert (told["sent"], told["listening"]) == (True, 1)
    nobody = await bench.run("send_message", content="hi", channel_id="77", here={"cluster": Cluster(hear=0)})
    assert (nobody["error"], "nothing is kept" in nobody["why"]) == ("the message was not sent", True)
    for id in ("general", "1 2", "9" * 30):
        assert "no id" in await bench.no("send_message", content="x", channel_id=id)


PROMPT = (
    "---\ncategory: review\ntags: [code]\nvariables: [{name: lang, default: Python}]\n---\n"
    "Review {{lang}}: {{ code }}"
)


async def test_prompts_come_from_rows_and_from_files_of_the_repository(bench: Bench) -> None:
    await bench.linked("shop", **{"prompts/review.md": PROMPT, "prompts/bad.md": "---\n[\n---\nx"})
    own = Prompt(project_id=project_key("default"), name="plan", category="planning", body="Plan {{goal}}")
    await bench.store.insert(own)
    told = await bench.ok("list_prompts", project_id="default")
    assert [prompt["name"] for prompt in told["prompts"]] == ["plan", "review"]
    assert (await bench.ok("list_prompts", project_id="default", tag="code"))["total"] == 1
    assert (await bench.ok("list_prompts", project_id="default", category="planning"))["total"] == 1
    assert (
        "Review {{lang}}" in (await bench.ok("read_prompt", project_id="default", name="review"))["content"]
    )
    words: dict[str, Any] = {"project_id": "default", "name": "review"}
    told = await bench.ok("render_prompt", variables={"code": "{{lang}}"}, **words)
    assert told["rendered"] == "Review Python: {{lang}}", "what is filled in is not filled in again"
    assert (await bench.ok("render_prompt", **words))["warning"] == "not given: code"
    assert "no prompt" in await bench.no("read_prompt", project_id="default", name="../review")
