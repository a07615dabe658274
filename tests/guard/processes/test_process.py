"""A child process: bounded in time and output, ended with its whole group, and without our secrets."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from pathlib import Path

import pytest

from shared.errors import ToolError
from shared.guard.processes.process import environment, run
from tests.guard.conftest import until


def gone(pid: int) -> bool:
    """No such process, not even a zombie of ours."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    # An orphan's zombie belongs to whoever adopted it.
    return state == "Z" and f"PPid:\t{os.getpid()}\n" not in Path(f"/proc/{pid}/status").read_text()


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_what_it_printed_and_how_it_ended_comes_back(tmp_path: Path) -> None:
    done = await run(["sh", "-c", "pwd; cat; echo no >&2; exit 3"], cwd=tmp_path, stdin=b"given")
    assert (done.exit_code, done.stdout, done.stderr) == (3, f"{tmp_path}\ngiven", "no\n")
    assert not done.timed_out and not done.truncated and not done.ok


async def test_input_that_nobody_reads_does_no_harm(tmp_path: Path) -> None:
    assert (await run(["true"], cwd=tmp_path, stdin=bytes(1 << 20))).ok
    assert (await run(["sh", "-c", "read x; echo $?"], cwd=tmp_path)).stdout == "1\n"


async def test_long_output_keeps_its_head_and_its_tail_and_does_not_grow_us(tmp_path: Path) -> None:
    program = (
        "import sys; sys.stdout.write('first' + 'é' * 20_000_000 + 'last'); sys.stderr.write('e' * 100_000)"
    )
    done = await run([sys.executable, "-c", program], cwd=tmp_path, limit=1000, error_limit=100, timeout=60)
    assert done.truncated and done.exit_code == 0
    assert done.stdout.startswith("first") and done.stdout.endswith("last") and "left out" in done.stdout
    assert len(done.stdout) < 1100 and len(done.stderr) < 200 and "\ufffd" not in done.stdout


async def test_a_timeout_ends_the_whole_group_and_what_was_printed_is_kept(tmp_path: Path) -> None:
    script = "sleep 60 & echo $! > child; (trap '' TERM INT HUP; sleep 60) & echo $! > deaf; echo said; wait"
    begun = time.monotonic()
    done = await run(["sh", "-c", script], cwd=tmp_path, timeout=0.5)
    assert done.timed_out and done.stdout == "said\n" and done.exit_code == -9
    assert time.monotonic() - begun < 10
    for name in ("child", "deaf"):
        await until(lambda name=name: gone(int((tmp_path / name).read_text())))  # type: ignore[misc]


async def test_what_it_leaves_in_the_background_ends_with_it(tmp_path: Path) -> None:
    done = await run(["sh", "-c", "sleep 60 & echo $!"], cwd=tmp_path, timeout=30)
    assert done.ok and done.ms < 10_000
    await until(lambda: gone(int(done.stdout)))


async def test_a_child_that_left_the_group_with_our_pipe_cannot_hold_us_up(tmp_path: Path) -> None:
    done = await asyncio.wait_for(
        run(["sh", "-c", "setsid sleep 60 & echo $!; exec true"], cwd=tmp_path, timeout=30), 15
    )
    assert done.ok
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(done.stdout), 9)


@pytest.mark.parametrize("when", [0.0, 0.001, 0.2])
async def test_cancelling_ends_the_group_and_leaves_no_zombie(tmp_path: Path, when: float) -> None:
    running = asyncio.create_task(run(["sh", "-c", "echo $$ > pid; sleep 60"], cwd=tmp_path))
    if when > 0.1:
        await until(lambda: (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text()))
    else:
        await asyncio.sleep(when)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 10)
    if (tmp_path / "pid").exists() and (text := (tmp_path / "pid").read_text()):
        await until(lambda: gone(int(text)))


async def test_no_secret_of_ours_is_in_its_environment(tmp_path: Path) -> None:
    assert os.environ["ANTHROPIC_API_KEY"] == "sk-ant-CANARY"
    done = await run(["env"], cwd=tmp_path)
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert "CANARY" not in done.stdout
    assert names <= {"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PWD", "SHLVL", "_"}
    assert environment(tmp_path)["HOME"] == str(tmp_path)


@pytest.mark.parametrize("argv", [["no-such-program-here"], ["/etc/hostname"], ["echo", "a\0b"]])
async def test_what_cannot_be_started_is_an_error_that_says_so(tmp_path: Path, argv: list[str]) -> None:
    with pytest.raises(ToolError, match="could not be started"):
        await run(argv, cwd=tmp_path)


async def test_a_hundred_children_leave_no_descriptor_open(tmp_path: Path) -> None:
    await run(["true"], cwd=tmp_path)
    before = descriptors()
    for _ in range(10):
        await asyncio.gather(*(run(["true"], cwd=tmp_path) for _ in range(10)))
    assert descriptors() <= before + 2


def test_it_works_the_same_on_uvloop(tmp_path: Path) -> None:
    import uvloop

    async def main() -> None:
        done = await run(["sh", "-c", "cat; echo out; sleep 60 &"], cwd=tmp_path, timeout=20, stdin=b"in\n")
        assert done.ok and done.stdout == "in\nout\n" and done.ms < 10_000
        assert (await run(["cat"], cwd=tmp_path, timeout=20, stdin=b"")).ok
        assert (await run(["true"], cwd=tmp_path, timeout=20, stdin=bytes(1 << 20))).ok
        late = await run(["sh", "-c", "sleep 60 & echo $! > child; wait"], cwd=tmp_path, timeout=0.3)
        assert late.timed_out
        await until(lambda: gone(int((tmp_path / "child").read_text())))
        running = asyncio.create_task(run(["sleep", "60"], cwd=tmp_path))
        await asyncio.sleep(0.05)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait_for(running, 10)

    uvloop.run(main())
