"""The filter of system calls: its machine code, its numbers, and each call tried where it counts."""

from __future__ import annotations

import errno
import json
import os
import re
import struct
from pathlib import Path

import pytest

from shared.guard.processes.process import run
from shared.guard.sandbox import seccomp
from tests.guard.conftest import sandbox

ALLOW, KILL = 0x7FFF0000, 0x80000000
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
# Where the kernel's own names and numbers stand, if its headers are installed.
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
UNIX, INET, INET6, NETLINK, STREAM, DGRAM = 1, 2, 10, 16, 1, 2


def judge(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """What the kernel would answer: its machine, as small as the filter needs it."""
    data = struct.pack("<iIQ6Q", number, arch, 0, *(value % 2**64 for value in (*arguments, *[0] * 6)[:6]))
    words, at, value = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)], 0, 0
    for _ in range(10_000):
        code, yes, no, k = words[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("<I", data, k)
            case 0x54:
                value &= k
            case 0x15:
                at += yes if value == k else no
            case 0x35:
                at += yes if value >= k else no
            case 0x05:
                at += k
            case 0x06:
                return int(k)
    raise AssertionError("it does not end")


def answer(name: str, *arguments: int, machine: str = "x86_64", **kind: bool) -> int:
    """0 where the call is let through, else the number of its error."""
    arch, column = MACHINES[machine]
    number = seccomp.NUMBERS[name][column]
    assert number is not None
    found = judge(seccomp.program(machine=machine, **kind), arch, number, *arguments)
    return 0 if found == ALLOW else found & 0xFFFF


@pytest.mark.parametrize("machine", MACHINES)
def test_each_call_that_is_refused_is_refused_with_any_arguments(machine: str) -> None:
    arch, column = MACHINES[machine]
    program = seccomp.program(machine=machine)
    for name, code in seccomp.REFUSED.items():
        if (number := seccomp.NUMBERS[name][column]) is not None:
            for arguments in ((0,) * 6, (2**64 - 1,) * 6):
                assert judge(program, arch, number, *arguments) == 0x00050000 | code, name


@pytest.mark.parametrize("machine", MACHINES)
def test_all_other_calls_pass(machine: str) -> None:
    arch, column = MACHINES[machine]
    named = {numbers[column] for numbers in seccomp.NUMBERS.values()}
    program = seccomp.program(machine=machine)
    for number in set(range(480)) - named:
        assert judge(program, arch, number) == ALLOW


def test_calls_of_other_machines_end_the_process() -> None:
    program = seccomp.program(machine="x86_64")
    assert judge(program, 0x40000003, 20) == KILL  # those of 32 bits
    x32 = judge(program, MACHINES["x86_64"][0], 0x40000000 + 16)
    assert x32 == 0x00050000 | errno.ENOSYS


@pytest.mark.parametrize("machine", HEADERS)
def test_the_numbers_are_the_kernels(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("the kernel's headers are not installed here")
    text, column = HEADERS[machine].read_text(), MACHINES[machine][1]
    kernels = {name: int(n) for name, n in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    assert len(kernels) > 250
    ours = {name: numbers[column] for name, numbers in seccomp.NUMBERS.items()}
    assert {name: ours[name] for name in ours if name in kernels} == {
        name: number for name, number in kernels.items() if name in ours
    }


def test_the_documentation_counts_them() -> None:
    text = (Path(__file__).parents[3] / "docs" / "workspaces.md").read_text("utf-8")
    assert f"refuses {len(seccomp.REFUSED)} calls" in text and f"and {len(seccomp.JUDGED)} for some" in text


def test_each_number_belongs_to_a_rule() -> None:
    assert seccomp.NUMBERS.keys() == seccomp.REFUSED.keys() | seccomp.JUDGED.keys() | {"socketpair"}
    assert not seccomp.REFUSED.keys() & seccomp.JUDGED.keys()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("socket", UNIX, STREAM, 0), 0), (("socket", INET, STREAM, 6), 0), (("socket", INET6, DGRAM, 17), 0),
        (("socket", INET, STREAM | 0o2000000, 0), 0), (("socket", NETLINK, 3, 0), 0),
        (("socket", NETLINK, 3, 9), errno.EPROTONOSUPPORT), (("socket", INET, STREAM, 262), errno.EPROTONOSUPPORT),
        (("socket", INET, 5, 132), errno.EPROTONOSUPPORT),
        *((("socket", family, 3, 0), errno.EAFNOSUPPORT) for family in (17, 38, 40, 43, 44, 29, 31, 21)),
        (("socket", INET + 2**32, STREAM, 0), 0),  # the kernel looks at the lower half, and so do we
        (("clone", 17), 0), (("clone", 0x003D0F00), 0), (("clone", 0x10000000 | 17), errno.EPERM),
        (("clone", 0x20000 | 17), errno.EPERM), (("unshare", 0x200), 0), (("unshare", 0x80), errno.EPERM),
        (("unshare", 0x10000000), errno.EPERM), (("ioctl", 0, 0x5401), 0), (("ioctl", 0, 0x5412), errno.EPERM),
        (("ioctl", 0, 0x541C), errno.EPERM), (("personality", 0xFFFFFFFF), 0), (("personality", 0x400000), errno.EPERM),
        (("fchmodat", 0, 0, 0o755), 0), (("fchmodat", 0, 0, 0o4755), errno.EPERM),
        (("fchmod", 0, 0o2755), errno.EPERM), (("openat", 0, 0, 0o101, 0o644), 0),
        (("openat", 0, 0, 0o101, 0o4755), errno.EPERM), (("openat", 0, 0, 0, 0o4755), 0),
        (("openat", 0, 0, 0x410002, 0o4755), errno.EPERM), (("mknodat", 0, 0, 0o104755), errno.EPERM),
    ],
)  # fmt: skip
@pytest.mark.parametrize("machine", MACHINES)
def test_some_calls_are_judged_by_their_arguments(machine: str, call: tuple[str, int], expected: int) -> None:
    assert answer(*call, machine=machine) == expected


@pytest.mark.parametrize(
    ("call", "sockets", "network", "expected"),
    [
        (("socket", UNIX, STREAM, 0), False, False, errno.EPERM),
        (("socket", INET, DGRAM, 0), False, False, errno.EPERM),
        (("socket", NETLINK, 3, 0), False, False, 0),
        (("socketpair", UNIX, STREAM, 0), False, False, 0),
        (("socketpair", UNIX, DGRAM, 0), False, False, errno.EPERM),
        (("socket", INET, STREAM, 6), False, True, 0),
        (("socket", UNIX, STREAM, 0), False, True, errno.EPERM),
        (("socket", UNIX, STREAM, 0), True, False, 0),
        (("socket", INET, STREAM, 0), True, False, errno.EPERM),
        (("socketpair", UNIX, DGRAM, 0), True, True, 0),
    ],
)
def test_where_sockets_are_closed_pairs_of_them_are_left(
    call: tuple[str, int], sockets: bool, network: bool, expected: int
) -> None:
    assert answer(*call, sockets=sockets, network=network) == expected


TRY = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
found = {}
for name, number in json.loads(sys.argv[1]).items():
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)
    found[name] = ctypes.get_errno() if result < 0 else 0
print(json.dumps(found))
"""


@pytest.mark.parametrize("mode", ["bwrap", "landlock"])
async def test_each_of_them_is_refused_to_a_command(mode: str, workspace: Path) -> None:
    """Called with nothing that could be done, should the filter be missing."""
    column = list(MACHINES).index(os.uname().machine)
    calls = {name: seccomp.NUMBERS[name][column] for name in seccomp.REFUSED}
    numbers = json.dumps({name: number for name, number in calls.items() if number is not None})
    done = await run(sandbox(mode).wrap(["python3", "-c", TRY, numbers], workspace, True), cwd=workspace)
    assert done.ok, done.stderr
    found = json.loads(done.stdout)
    assert len(found) > 50 and found == {name: seccomp.REFUSED[name] for name in found}


@pytest.mark.parametrize("mode", ["bwrap", "landlock"])
async def test_what_programs_need_goes_on(mode: str, workspace: Path) -> None:
    """Threads, processes that talk to each other, and what other calls are tried in place of those refused."""
    (workspace / "work.py").write_text(
        "import asyncio, multiprocessing, os, threading, shutil\n"
        "def work(end): end.send(6 * 7)\n"
        "if __name__ == '__main__':\n"
        "    multiprocessing.set_start_method('spawn')\n"
        "    for kind in (multiprocessing.Process, threading.Thread):\n"
        "        ours, theirs = multiprocessing.Pipe()\n"
        "        other = kind(target=work, args=(theirs,)); other.start()\n"
        "        assert ours.recv() == 42; other.join()\n"
        "    async def talk():\n"
        "        child = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)\n"
        "        return (await child.communicate(b'hi'))[0]\n"
        "    assert asyncio.run(talk()) == b'hi'\n"
        "    with open('big', 'wb') as file: os.posix_fallocate(file.fileno(), 0, 65536)\n"
        "    assert os.path.getsize('big') == 65536\n"
        "    shutil.copy2('big', 'copy')\n"
    )
    command = (
        "python3 work.py && tar cf t.tar work.py big && rm big && tar xf t.tar && git init -q r && echo fine"
    )
    done = await run(sandbox(mode).wrap(["bash", "-c", command], workspace, True), cwd=workspace)
    assert done.stdout.strip() == "fine", done.stderr
