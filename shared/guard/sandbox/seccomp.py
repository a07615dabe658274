"""The filter of system calls that every confined command runs under, as the kernel's own machine code.

What is here is refused: ways to change the machine or to look into another process, parts of the kernel that few
programs need and many attacks use, and files that run as their owner. The rest is left to the kernel.
`docs/workspaces.md` says the same in words; a test compares the numbers with the kernel's.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import platform
import struct
import sys
from typing import NamedTuple

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000  # added to the numbers of the other set of calls that x86_64 has

# Of each call its number on x86_64 and on aarch64.
NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "_sysctl": (156, None),
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chmod": (90, None),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "creat": (85, None),
    "create_module": (174, None),
    "delete_module": (176, 106),
    "fallocate": (285, 47),
    "fanotify_init": (300, 262),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "migrate_pages": (256, 238),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open": (2, None),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "openat": (257, 56),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "sysfs": (139, None),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "ustat": (136, None),
    "vhangup": (153, 58),
}

# Refused whatever they are called with. Where a program has another way, it is told that there is no such call.
REFUSED: dict[str, int] = {
    **dict.fromkeys(
        (
            "_sysctl", "acct", "add_key", "adjtimex", "bpf", "chroot", "clock_adjtime", "clock_settime",
            "create_module", "delete_module", "fanotify_init", "finit_module", "fsconfig", "fsmount", "fsopen",
            "fspick", "init_module", "ioperm", "iopl", "kcmp", "kexec_file_load", "kexec_load", "keyctl",
            "lookup_dcookie", "migrate_pages", "modify_ldt", "mount", "mount_setattr", "move_mount", "move_pages",
            "nfsservctl", "open_by_handle_at", "open_tree", "open_tree_attr", "perf_event_open", "pidfd_getfd",
            "pivot_root", "process_madvise", "process_vm_readv", "process_vm_writev", "quotactl", "quotactl_fd",
            "reboot", "request_key", "setns", "settimeofday", "swapoff", "swapon", "sysfs", "syslog", "umount2",
            "uselib", "userfaultfd", "ustat", "vhangup",
        ),
        errno.EPERM,
    ),
    **dict.fromkeys(
        ("clone3", "io_uring_enter", "io_uring_register", "io_uring_setup", "openat2"), errno.ENOSYS
    ),
    "name_to_handle_at": errno.EOPNOTSUPP,
    "fallocate": errno.EOPNOTSUPP,  # what is written instead is seen in time by who watches the disk
}  # fmt: skip

ALLOW, NEXT = 0, -1  # in place of an error's number: let it through; ask the next test


class Test(NamedTuple):
    """Of one argument, after a mask: what becomes of the call when it is one of these values, and when not."""

    argument: int
    values: tuple[int, ...]
    then: int
    otherwise: int
    mask: int = 0xFFFFFFFF


_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_NAMESPACES = 0x7E020080  # CLONE_NEW…
_PERSONALITIES = (0, 0x8, 0x20000, 0x20008, 0x40000, 0xFFFFFFFF)  # plain, or without random addresses
_TERMINALS = (0x5412, 0x541C, 0x5423)  # TIOCSTI, TIOCLINUX, TIOCSETD: typing for somebody else, and drivers
_AS_OWNER = 0o6000  # setuid, setgid
_CREATES = 0x400040  # O_CREAT, O_TMPFILE
_STREAMS = (1, 5)  # SOCK_STREAM, SOCK_SEQPACKET: a pair of the other kinds can be sent elsewhere


def _modes(argument: int) -> Test:
    return Test(argument, (0,), ALLOW, errno.EPERM, _AS_OWNER)


# Refused for some arguments.
JUDGED: dict[str, tuple[Test, ...]] = {
    "clone": (Test(0, (0,), ALLOW, errno.EPERM, _NAMESPACES & ~0xFF),),  # its low byte is a signal
    "unshare": (Test(0, (0,), ALLOW, errno.EPERM, _NAMESPACES),),
    "ioctl": (Test(1, _TERMINALS, errno.EPERM, ALLOW),),
    "personality": (Test(0, _PERSONALITIES, ALLOW, errno.EPERM),),
    "socket": (
        Test(0, (_UNIX, _INET, _INET6, _NETLINK), NEXT, errno.EAFNOSUPPORT),
        Test(0, (_UNIX,), ALLOW, NEXT),
        Test(2, (0,), ALLOW, NEXT),  # of netlink: the list of interfaces
        Test(0, (_NETLINK,), errno.EPROTONOSUPPORT, NEXT),
        Test(2, (1, 6, 17, 58), ALLOW, errno.EPROTONOSUPPORT),  # ICMP, TCP, UDP, ICMPv6
    ),
    "chmod": (_modes(1),),
    "fchmod": (_modes(1),),
    "fchmodat": (_modes(2),),
    "fchmodat2": (_modes(2),),
    "creat": (_modes(1),),
    "mknod": (_modes(1),),
    "mknodat": (_modes(2),),
    "open": (Test(1, (0,), ALLOW, NEXT, _CREATES), _modes(2)),
    "openat": (Test(2, (0,), ALLOW, NEXT, _CREATES), _modes(3)),
}
_PAIRS = (Test(0, (_UNIX,), NEXT, errno.EAFNOSUPPORT), Test(1, _STREAMS, ALLOW, errno.EPERM, 0xF))


def known() -> bool:
    """Whether there is a filter for this machine."""
    return sys.platform == "linux" and sys.byteorder == "little" and platform.machine() in _ARCHITECTURES


@functools.cache
def program(sockets: bool = True, network: bool = True, machine: str = "") -> bytes:
    """The filter. Without `sockets` none with a path can be made, without `network` none of the internet.

    Pairs of sockets, which processes of one program talk through, are left in any case.
    """
    machine = machine or platform.machine()
    column = list(_ARCHITECTURES).index(machine)
    judged = dict(JUDGED)
    if not sockets:
        left = (_INET, _INET6) if network else ()
        known = Test(0, (_NETLINK, *left), NEXT, errno.EPERM)
        judged["socket"] = (known, *JUDGED["socket"][2:])
        judged["socketpair"] = _PAIRS
    elif not network:
        judged["socket"] = (Test(0, (_UNIX, _NETLINK), NEXT, errno.EPERM), *JUDGED["socket"][1:])
    rules = {name: (Test(0, (), ALLOW, code),) for name, code in REFUSED.items()} | judged
    words = [_load(4), _jump(_ARCHITECTURES[machine], 1, 0), _answer(_KILL), _load(0)]
    if machine == "x86_64":
        words += [_word(_JUMP_FROM, 0, 1, _X32), _answer(_ERROR | errno.ENOSYS)]
    for name, tests in sorted(rules.items()):
        if (number := NUMBERS[name][column]) is not None:
            block = [word for test in tests for word in _tested(test)]
            # No block ends without an answer, so that none falls into the next one.
            words += [_jump(number, 0, len(block)), *block]
    return b"".join([*words, _answer(_ALLOW)])


_LOAD, _JUMP, _JUMP_FROM, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_KILL, _ERROR, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000


def _word(code: int, yes: int, no: int, value: int) -> bytes:
    return struct.pack("<HBBI", code, yes, no, value)


def _load(offset: int) -> bytes:
    return _word(_LOAD, 0, 0, offset)


def _jump(value: int, yes: int, no: int) -> bytes:
    return _word(_JUMP, yes, no, value)


def _answer(what: int) -> bytes:
    return _word(_RETURN, 0, 0, what)


def _tested(test: Test) -> list[bytes]:
    """Load the argument, compare it with each value; two answers follow, of which NEXT is a jump behind both."""
    words = [_load(16 + 8 * test.argument), _word(_AND, 0, 0, test.mask)] if test.values else []
    left = len(test.values)
    for at in range(left):
        words.append(_jump(test.values[at], left - at, 0))
    return [*words, _outcome(test.otherwise, 1), *([_outcome(test.then, 0)] if left else [])]


def _outcome(what: int, skip: int) -> bytes:
    if what == NEXT:
        return _word(0x05, 0, 0, skip)  # jump always
    return _answer(_ALLOW if what == ALLOW else _ERROR | what)


_files: dict[tuple[int, bytes], int] = {}


def file(filter: bytes) -> str:
    """A path at which the children of this process find the filter; nobody can change what stands there."""
    key = (os.getpid(), filter)
    if key not in _files:
        fd = os.memfd_create("filter", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(fd, filter)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, 0xF)  # neither shrunk, grown, written nor unsealed
        _files[key] = fd
    return f"/proc/{os.getpid()}/fd/{_files[key]}"
