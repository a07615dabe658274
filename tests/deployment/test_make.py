"""The Makefile and .ci/run do what they say, without a network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def _run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # what a `make test ARGS=…` that runs us hands down must not reach the one that is tried here
    ours = ("MAKE", "MFLAGS", "ARGS", "PYTHON")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run(
        command, cwd=folder, env=clean | environment, capture_output=True, text=True, timeout=60, check=False
    )


def _script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def _old(tree: Path) -> Path:
    """A Python that says of itself that it is 3.10."""
    says = "import sys; sys.version_info = (3, 10, 13); exec(sys.argv[1])"
    return _script(tree / "old/python3", f"exec {sys.executable} -c '{says}' \"$2\"")


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    """This Python, whose environments have no pip: that alone takes seconds, and is not ours."""
    made = f'[ "$1 $2" != "-m venv" ] || set -- -m venv --without-pip "$3" "$4"\nexec {sys.executable} "$@"'
    return _script(tmp_path / "quick/python3", made)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with nothing installed."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def installed(tree: Path) -> Path:
    """A checkout after its first `make up`; its venv holds stand-ins that say what they are asked."""
    for name in ("python", "promptdock"):
        _script(tree / ".venv/bin" / name, f'echo "{name} $*"')
    (tree / ".venv/pyvenv.cfg").touch()
    done = _run(tree, "make", "up")
    assert done.returncode == 0, done.stderr
    return tree


def test_the_first_up_installs_without_development_tools(tree: Path) -> None:
    planned = _run(tree, "make", "--dry-run", "up").stdout
    assert '--editable ".[sandbox,openai,ag-ui,notify]"' in planned
    assert "[dev" not in planned
    assert planned.rstrip().endswith("promptdock up")


def test_a_second_up_starts_without_pip(installed: Path) -> None:
    assert _run(installed, "make", "up").stdout == "promptdock up\n"


def test_what_is_installed_is_compiled_and_stays_so_whatever_the_environment_says(installed: Path) -> None:
    for package in ("agents", "gateways", "shared"):
        assert re.search(rf"-m compileall .*\b{package}\b", _run(installed, "make", "-nB", "up").stdout)
    _script(installed / ".venv/bin/promptdock", 'echo "${PYTHONDONTWRITEBYTECODE-unset}"')
    assert _run(installed, "make", "up", PYTHONDONTWRITEBYTECODE="1").stdout == "unset\n"


def test_arguments_are_passed_on(installed: Path) -> None:
    assert (
        _run(installed, "make", "up", "ARGS=--without planner").stdout == "promptdock up --without planner\n"
    )


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_change_of_what_is_needed_installs_again(installed: Path, name: str) -> None:
    later = (installed / ".venv/.installed").stat().st_mtime + 10
    os.utime(installed / name, (later, later))
    assert "pip install" in _run(installed, "make", "up").stdout


def test_tests_install_the_development_tools_once_and_with_them_what_up_needs(installed: Path) -> None:
    (installed / ".venv/.installed").unlink()
    first = _run(installed, "make", "test", "ARGS=tests/guard -x").stdout
    assert ".[dev,sandbox,openai,ag-ui,notify]" in first
    assert re.search(r"python -m pytest .*tests/guard -x\n$", first)
    assert "pip" not in _run(installed, "make", "test").stdout
    assert "pip" not in _run(installed, "make", "up").stdout, "it is all there already"


def test_an_install_that_failed_is_tried_again(installed: Path) -> None:
    (installed / ".venv/.installed").unlink()
    _script(installed / ".venv/bin/python", "exit 7")
    assert _run(installed, "make", "up").returncode != 0
    _script(installed / ".venv/bin/python", 'echo "python $*"')
    assert "pip install" in _run(installed, "make", "up").stdout


def test_a_python_that_is_too_old_is_refused_with_what_to_do(tree: Path) -> None:
    old = _old(tree)
    done = _run(tree, "make", "install", f"PYTHON={old}")
    assert done.returncode != 0
    assert "needs Python 3.11 or newer" in done.stderr
    assert "make install PYTHON=" in done.stderr
    assert not (tree / ".venv").exists()


def test_the_first_python_that_is_new_enough_makes_the_environment(tree: Path, quick: Path) -> None:
    old = _old(tree)
    done = _run(tree, "make", ".venv/pyvenv.cfg", f"PYTHON={old} {quick}")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("Making an environment for Python 3."), "what takes seconds is said before"
    version = _run(tree, ".venv/bin/python", "-c", "import sys; print(*sys.version_info[:2])").stdout
    assert version.split() == [str(part) for part in sys.version_info[:2]]


@pytest.mark.parametrize("folder", ["plain", "with a blank"])
def test_a_checkout_that_was_moved_gets_its_environment_anew(tree: Path, quick: Path, folder: str) -> None:
    place = tree / folder
    place.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(tree / name, place / name)
    made = _run(place, "make", ".venv/pyvenv.cfg", f"PYTHON={quick}")
    assert made.returncode == 0 and "moved" not in made.stderr, made.stderr
    assert _run(place, "make", ".venv/pyvenv.cfg").stdout.endswith("is up to date.\n")
    moved = place.rename(tree / f"{folder} 2")
    assert "pip install" in _run(moved, "make", "--dry-run", "up").stdout
    again = _run(moved, "make", ".venv/pyvenv.cfg", f"PYTHON={quick}")
    assert again.returncode == 0 and "was moved or renamed" in again.stderr, again.stderr
    named = (moved / ".venv/bin/activate").read_text()
    assert str(moved / ".venv") in named and str(place / ".venv") + '"' not in named
    assert _run(moved, ".venv/bin/python", "-c", "").returncode == 0
    assert _run(moved, "make", ".venv/pyvenv.cfg").stdout.endswith("is up to date.\n")


def test_clean_leaves_the_data(installed: Path) -> None:
    (installed / ".promptdock").mkdir()
    assert _run(installed, "make", "clean").returncode == 0
    assert not (installed / ".venv").exists()
    assert (installed / ".promptdock").exists()


@pytest.fixture
def ci(tmp_path: Path) -> Path:
    """Only .ci/run, with stand-ins for what it calls; `make` notes its targets and fails for $FAIL."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    for name in ("git", "bwrap", "python3"):
        _script(tmp_path / "bin" / name, "exit 0")
    _script(tmp_path / "bin/make", f'echo "$1" >> {tmp_path}/asked; [ "$1" != "$FAIL" ] || exit 5')
    return tmp_path


@pytest.mark.parametrize(("fail", "code"), [("none", 0), ("install", 1), ("check", 1), ("test", 1)])
def test_ci_runs_every_step_and_fails_if_one_did(ci: Path, fail: str, code: int) -> None:
    done = _run(ci, ".ci/run", FAIL=fail, PATH=f"{ci}/bin:{os.environ['PATH']}")
    assert (ci / "asked").read_text().split() == ["install", "check", "test"]
    assert done.returncode == code, done.stdout
    assert (f"make {fail} (exit 5)" in done.stdout) == bool(code)
