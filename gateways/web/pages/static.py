"""Script and style: addressed by what they hold, so that a browser keeps them for good and never has old ones."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

ROOT = Path(__file__).parents[1] / "static"
_KEPT = "public, max-age=31536000, immutable"
_SMALL = 1000  # bytes below which nothing is packed

router = APIRouter()


@cache
def held() -> dict[str, bytes]:
    """The files by name; read once."""
    return {path.name: path.read_bytes() for path in sorted(ROOT.iterdir()) if path.is_file()}


@cache
def version() -> str:
    """Of all of them together: modules name each other."""
    digest = hashlib.sha256()
    for name, content in held().items():
        digest.update(name.encode() + b"\0" + content + b"\0")
    return digest.hexdigest()[:12]


def address(name: str) -> str:
    """Where a file is found."""
    return f"/static/{version()}/{name}"


@cache
def _packed(name: str) -> bytes:
    return gzip.compress(held()[name], 9, mtime=0)


@router.get("/static/{made}/{name}")
async def file(request: Request, made: str, name: str) -> Response:
    """One file; that of another version is not there."""
    if name not in held() or made != version():
        raise HTTPException(404)
    content = held()[name]
    headers = {"Cache-Control": _KEPT, "Vary": "Accept-Encoding"}
    if len(content) > _SMALL and "gzip" in request.headers.get("accept-encoding", ""):
        content = _packed(name)
        headers["Content-Encoding"] = "gzip"
    kind = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0]
    return Response(content, media_type=kind or "application/octet-stream", headers=headers)


@router.get("/static/{name}")
async def newest(name: str) -> Response:
    """The file of that name as it is now, for pages that stand without templates."""
    if name not in held():
        raise HTTPException(404)
    return RedirectResponse(address(name), 302)
