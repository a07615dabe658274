"""The bus on redis-py; the only room that imports redis."""

import sys

# redis-py looks for OpenTelemetry, which comes with other libraries, to keep metrics that we do not read.
_metrics = sys.modules.setdefault("opentelemetry", None)  # type: ignore[arg-type]
from shared.bus.redis.client import RedisBus  # noqa: E402

if _metrics is None:
    del sys.modules["opentelemetry"]

__all__ = ["RedisBus"]
