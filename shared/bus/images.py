"""Pictures in a person's message: which are taken, and what a model is shown of them."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

MAX_IMAGES = 4  # of one message; what they may weigh follows from the bound of the message
MAX_IMAGE_BYTES = 176 * 1024  # of all together: as base64 they leave room for the words

ImageKind = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]


def kind_of(data: bytes) -> ImageKind | None:
    """What the bytes say that they are, whatever a name or a header says."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


class Image(BaseModel):
    """One picture, as base64."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    media_type: ImageKind
    data: Annotated[str, StringConstraints(min_length=16)]

    @model_validator(mode="after")
    def _whole(self) -> Image:
        try:
            found = kind_of(self.content)
        except (binascii.Error, ValueError):
            raise ValueError("its data is no base64") from None
        if found != self.media_type:
            raise ValueError(f"it is {found or 'no picture that is taken'}, not {self.media_type}")
        return self

    @property
    def content(self) -> bytes:
        """Its bytes."""
        return base64.b64decode(self.data, validate=True)

    def block(self) -> dict[str, Any]:
        """As a model is sent it."""
        return {
            "type": "image",
            "source": {"type": "base64", "media_type": self.media_type, "data": self.data},
        }


def image_of(data: bytes) -> Image | None:
    """The picture that these bytes are; None where they are none that is taken."""
    kind = kind_of(data)
    return Image(media_type=kind, data=base64.b64encode(data).decode()) if kind else None
