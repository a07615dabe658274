"""Journal records as bytes: JSON, compressed above 32 KiB."""

from __future__ import annotations

import json
import zlib
from typing import Any

Record = dict[str, Any]
COMPRESS_ABOVE = 32 * 1024
_PACKED = b"z"


def pack(record: Record) -> bytes:
    """A record as it lies in Redis."""
    data = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return _PACKED + zlib.compress(data, 1) if len(data) > COMPRESS_ABOVE else data


def unpack(data: bytes) -> Record:
    """The record again."""
    value = json.loads(zlib.decompress(data[1:]) if data[:1] == _PACKED else data)
    if not isinstance(value, dict):
        raise ValueError("it is no record")
    return value
