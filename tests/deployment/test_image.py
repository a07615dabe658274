"""The Dockerfile builds from files that exist and runs a worker that hears SIGTERM."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

from tests.deployment.reading import (
    argument,
    broken,
    compose,
    dockerfile,
    exec_form,
    ignored,
    unknown_variables,
)
from tests.house.tree import ROOT, files, project


def _copied() -> list[str]:
    lines = [rest.split() for word, rest in dockerfile() if word == "COPY" and not rest.startswith("--from")]
    return [source for words in lines for source in words[:-1]]


def test_what_is_copied_exists_and_reaches_the_builder() -> None:
    assert {"agents", "gateways", "shared", "pyproject.toml", "constraints.txt"} <= set(_copied())
    assert [source for source in _copied() if not (ROOT / source).exists() or ignored(source)] == []


def test_secrets_data_and_history_do_not_reach_the_builder() -> None:
    kept = [".env", ".git", ".promptdock", ".venv", "tests", "shared/__pycache__", "shared/bus/__pycache__"]
    assert [path for path in kept if not ignored(path)] == []


def test_every_package_of_the_project_is_copied() -> None:
    packages = {
        pattern.rstrip("*") for pattern in project()["tool"]["setuptools"]["packages"]["find"]["include"]
    }
    assert packages <= set(_copied())


def test_every_file_that_the_packages_hold_is_installed_with_them() -> None:
    patterns = [
        pattern if package == "*" else f"{package.replace('.', '/')}/{pattern}"
        for package, some in project()["tool"]["setuptools"]["package-data"].items()
        for pattern in some
    ]
    packages = tuple(f"{source}/" for source in ("agents", "gateways", "shared"))
    data = [name for name in files() if name.startswith(packages) and not name.endswith(".py")]
    assert data, "the agents' profiles are data"
    assert [name for name in data if not any(fnmatch(name, pattern) for pattern in patterns)] == []


def test_what_is_copied_is_enough_to_install_the_project(tmp_path: Path) -> None:
    for source in _copied():
        place = tmp_path / source
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, place)
    wanted = project()
    read_at_build = [wanted["project"]["readme"], *wanted["project"]["license-files"]]
    assert [name for name in read_at_build if not (tmp_path / name).is_file()] == []
    # the modules that the image runs import from these files alone
    code = "import shared.settings, shared.errors, sys; print(shared.settings.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path.resolve()))


def test_the_command_is_a_worker_without_a_shell_between_it_and_signals() -> None:
    command = exec_form(argument("CMD"))
    assert broken(command) == []
    assert argument("STOPSIGNAL") == "SIGTERM"
    assert not any(word == "ENTRYPOINT" for word, _ in dockerfile())


def test_the_health_check_asks_for_the_presence_of_the_agent_that_runs() -> None:
    check = argument("HEALTHCHECK").partition("CMD ")[2]
    assert check == 'promptdock status "$AGENT_NAME"'
    assert broken("promptdock status chatter") == []
    assert "AGENT_NAME=chatter" in argument("ENV")
    assert exec_form(argument("CMD"))[2] == "agents.chatter"


def test_the_image_sets_only_variables_that_exist() -> None:
    assert unknown_variables(re.findall(r"([A-Z_]+)=", argument("ENV"))) == set()


def test_it_does_not_run_as_root_and_owns_its_data() -> None:
    user = argument("USER")
    assert user not in ("root", "0")
    setup = [rest for word, rest in dockerfile() if word == "RUN"][-1]
    assert f"useradd --create-home --uid 1000 {user}" in setup
    assert f"install -d -o {user} -g {user} /data" in setup


def test_it_brings_git_and_bubblewrap() -> None:
    setup = [rest for word, rest in dockerfile() if word == "RUN"][-1]
    assert {"git", "bubblewrap"} <= set(setup.split())


def test_a_supported_python_is_the_base_of_both_stages() -> None:
    major, minor = argument("ARG").removeprefix("PYTHON=").split(".")
    assert (int(major), int(minor)) >= (3, 11)
    bases = [rest.split()[0] for word, rest in dockerfile() if word == "FROM"]
    assert bases == ["python:${PYTHON}-slim-bookworm"] * 2


def test_compose_mounts_its_volume_where_the_image_keeps_data() -> None:
    assert argument("VOLUME") == "/data"
    assert argument("WORKDIR") == "/", "what agents write into the data folder is never imported"
    assert "PYTHONSAFEPATH=1" in argument("ENV").split()
    assert all(
        service["volumes"] == ["data:/data"]
        for name, service in compose()["services"].items()
        if name != "redis"
    )
