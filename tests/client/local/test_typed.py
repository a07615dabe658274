"""Commands in our words can be typed as printed, wherever the program lies; a model's words stay as they are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from shared.bus.messages import Output
from shared.client.local.typed import CALLED, HOME, runnable, text_of

ADVICE = "see promptdock status; `promptdock up` starts what is missing"


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A clone with an environment of its own, which is not on PATH."""
    program = tmp_path / ".venv/bin/promptdock"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for name in (CALLED, HOME):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "argv", [str(program), "ask"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def output(text: str, **more: object) -> Output:
    fields = {"user_id": "ann", "status": "complete", "id": "m1.end", "session_id": "s"}
    return Output.model_validate({**fields, "content": text, **more})


def test_a_program_below_this_folder_is_called_by_its_path() -> None:
    words = "see .venv/bin/promptdock status; `.venv/bin/promptdock up` starts what is missing"
    assert runnable(ADVICE) == words
    assert runnable(words) == words  # nothing is spelled out twice


def test_one_on_the_path_is_called_by_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder / ".venv/bin"))
    assert runnable(ADVICE) == ADVICE


def test_a_data_folder_that_was_named_is_named_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME, str(folder / "my data"))
    words = f"PROMPTDOCK_HOME='{folder / 'my data'}' .venv/bin/promptdock up"
    assert runnable("promptdock up") == runnable(runnable("promptdock up")) == words
    monkeypatch.setenv("PATH", str(folder / ".venv/bin"))
    assert runnable(runnable("promptdock up")) == words.replace(".venv/bin/", "")


def test_a_command_for_another_data_folder_names_that_one_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "start it: PROMPTDOCK_HOME='/a b' .venv/bin/promptdock up"
    assert runnable("start it: PROMPTDOCK_HOME='/a b' promptdock up") == words
    monkeypatch.setenv(HOME, str(folder / "mine"))
    assert runnable("start it: PROMPTDOCK_HOME='/a b' promptdock up") == words
    monkeypatch.setenv("PATH", str(folder / ".venv/bin"))
    assert runnable("PROMPTDOCK_HOME=/x promptdock up") == "PROMPTDOCK_HOME=/x promptdock up"


def test_a_module_of_ours_is_run_by_the_python_that_has_it() -> None:
    assert runnable("python -m agents --name planner").endswith("/bin/python -m agents --name planner")
    assert runnable("python -m pytest") == "python -m pytest"


def test_a_process_that_became_another_is_called_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CALLED, "bin/promptdock")
    assert runnable("promptdock up") == "bin/promptdock up"


@pytest.mark.parametrize("text", ["promptdock: it failed", "promptdock 0.1.0", "my/promptdock up"])
def test_what_is_no_command_stays(text: str) -> None:
    assert runnable(text) == text


def test_the_clusters_own_words_are_made_to_work_and_a_models_are_not() -> None:
    assert text_of(output("promptdock up")) == ".venv/bin/promptdock up"
    assert text_of(output("promptdock up", demo=True)) == "[demo] .venv/bin/promptdock up"
    assert text_of(output("promptdock up", model="claude-sonnet-5-5")) == "promptdock up"
