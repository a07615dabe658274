"""How a server is reached: without the library where the address says only where, who and which database."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.bus.embedded import binary
from shared.bus.redis import RedisBus
from shared.bus.redis.ways import Plain, plain
from shared.errors import BusUnreachable, ConfigurationError
from tests.house.tree import ROOT

NAMED = ("CLIENT", "SETNAME", "me")
PASSWORD = "a pass/word"


@pytest.mark.parametrize(
    ("url", "way"),
    [
        ("redis://somewhere", Plain("somewhere", 6379, "", (NAMED,))),
        ("redis://[::1]:7000/0", Plain("::1", 7000, "", (NAMED,))),
        ("redis://:a%20b@h:1/2", Plain("h", 1, "", (("AUTH", "a b"), NAMED, ("SELECT", 2)))),
        ("redis://u%40:p@h:1", Plain("h", 1, "", (("AUTH", "u@", "p"), NAMED))),
        ("redis://u@h:1", Plain("h", 1, "", (("AUTH", "u", ""), NAMED))),
        ("unix:///run/a%20b.sock", Plain("localhost", 6379, "/run/a b.sock", (NAMED,))),
    ],
)
def test_a_plain_address_says_where_who_and_which_database(url: str, way: Plain) -> None:
    assert plain(url, "me") == way


@pytest.mark.parametrize(
    "url", ["rediss://h:1", "redis://h:1?db=2", "redis://h:1/name", "unix:///s?db=1", "http://h"]
)
def test_what_an_address_says_beyond_that_is_left_to_the_library(url: str) -> None:
    assert plain(url, "me") is None


def test_a_bus_on_one_server_without_tls_loads_no_library() -> None:
    program = (
        "import sys\n"
        "from shared.bus.redis import RedisBus\n"
        "RedisBus('redis://h:1')\n"
        "assert 'redis' not in sys.modules\n"
        "RedisBus('rediss://h:1')\n"
        "assert 'redis' in sys.modules and 'redis.asyncio.sentinel' in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def socket_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A server with a password that listens on no port."""
    folder = tmp_path_factory.mktemp("socket")
    config, file = folder / "valkey.conf", folder / "s"
    lines = ("port 0", f'unixsocket "{file}"', f'dir "{folder}"', f'requirepass "{PASSWORD}"', 'save ""')
    config.write_text("\n".join(lines))
    process = subprocess.Popen([str(binary()), str(config)], stdout=subprocess.DEVNULL)
    ends = time.monotonic() + 20
    while not file.exists():
        assert time.monotonic() < ends, "the server did not come up"
        time.sleep(0.01)
    yield file
    process.kill()
    process.wait(10)


async def _info(url: str) -> str:
    bus = RedisBus(url, silence=2.0, client_name="somebody")
    try:
        return str((await bus.command("CLIENT", "INFO")).decode())
    finally:
        await bus.close()


@pytest.mark.parametrize("by_library", [False, True], ids=["ourselves", "library"])
async def test_a_connection_has_its_login_its_name_and_its_database(
    socket_file: Path, valkey: str, by_library: bool
) -> None:
    more = "?db=0" if by_library else ""
    info = await _info(f"unix://:a%20pass%2Fword@{socket_file}{more}")
    assert " name=somebody " in info and f"{socket_file}" in info
    info = await _info(f"{valkey}?db=3" if by_library else f"{valkey}/3")
    assert " name=somebody " in info and " db=3 " in info


@pytest.mark.parametrize("by_library", [False, True], ids=["ourselves", "library"])
@pytest.mark.parametrize("login", ["", ":wrong@", "nobody:wrong@"])
async def test_a_wrong_login_is_said_as_such(socket_file: Path, login: str, by_library: bool) -> None:
    with pytest.raises(ConfigurationError, match="does not let us in"):
        await _info(f"unix://{login}{socket_file}{'?db=0' if by_library else ''}")


@pytest.mark.parametrize("database", ["/99999", "?db=99999"], ids=["ourselves", "library"])
async def test_a_database_that_does_not_exist_is_an_error_in_the_servers_words(
    valkey: str, database: str
) -> None:
    with pytest.raises(BusUnreachable, match="DB index is out of range"):
        await _info(f"{valkey}{database}")
