"""Pictures that tests send: small, whole, and made here."""

from __future__ import annotations

import base64
import struct
import zlib

from shared.bus.images import Image


def png(width: int = 4, height: int = 4, red: int = 200) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = (b"\0" + bytes((red, 40, 90)) * width) * height
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def picture(red: int = 200) -> Image:
    """One, as a message holds it."""
    return Image(media_type="image/png", data=base64.b64encode(png(red=red)).decode())
