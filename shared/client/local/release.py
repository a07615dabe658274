"""The version of this release."""

from __future__ import annotations


def release() -> str:
    """As it was installed."""
    from importlib.metadata import PackageNotFoundError, version  # 20 ms, with its parser of e-mail

    try:
        return version("promptdock")
    except PackageNotFoundError:
        return "0.1.0"
