"""Put on the path of a worker: notes which names of nobody it looks up, or hands to a program that has a network."""

import os
import sys

_FILE = os.environ.get("WATCHED", "")
_ENDING = ".invalid"


def _note(event: str, args: tuple[object, ...]) -> None:
    if event not in ("socket.getaddrinfo", "subprocess.Popen"):
        return
    text = " ".join(map(str, args[:2]))
    if _ENDING in text and "--unshare-net" not in text:
        with open(_FILE, "a", encoding="utf-8", errors="replace") as out:  # noqa: PTH123 - nothing is imported here
            out.write(f"{event} {text[-3000:]}\n".replace("\n", " ") + "\n")


if _FILE:
    sys.addaudithook(_note)
