"""Pictures in a person's message: what is taken, and what is refused in words."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from shared.bus import messages
from shared.bus.images import MAX_IMAGE_BYTES, MAX_IMAGES, image_of
from shared.bus.messages import human
from shared.bus.reading import MAX_BYTES, read
from shared.errors import BadMessage
from tests.support.pictures import picture, png

GOOD = picture().model_dump()


def said(images: Any) -> messages.Said:
    """A message as it comes in."""
    found = human(read(json.dumps({"user_id": "ann", "content": "Look", "images": images}).encode()))
    assert isinstance(found, messages.Said)
    return found


def test_pictures_come_with_words_and_are_blocks_for_a_model() -> None:
    found = said([GOOD, picture(red=1).model_dump()]).images
    assert [one.content for one in found] == [png(), png(red=1)]
    assert found[0].block()["source"] == {"type": "base64", **GOOD}


def test_what_a_picture_is_follows_from_its_bytes() -> None:
    kinds = (png(), b"\xff\xd8\xff\xe0" + bytes(20), b"GIF89a" + bytes(20), b"RIFF\0\0\0\0WEBP" + bytes(20))
    assert [getattr(image_of(data), "media_type", None) for data in kinds] == [
        "image/png", "image/jpeg", "image/gif", "image/webp",
    ]  # fmt: skip
    assert image_of(b"<svg xmlns='http://www.w3.org/2000/svg'/>") is None


@pytest.mark.parametrize(
    "images",
    [
        [{**GOOD, "media_type": "image/svg+xml"}],
        [{**GOOD, "media_type": "image/jpeg"}],
        [{**GOOD, "data": "no base64 at all!"}],
        [{**GOOD, "data": base64.b64encode(b"<svg onload=alert(1)>........").decode()}],
        [{**GOOD, "url": "https://example.com/x.png"}],
        [GOOD] * (MAX_IMAGES + 1),
        [GOOD, "x"],
        "x",
    ],
    ids=["svg", "another kind", "no base64", "no picture", "an address", "too many", "a text", "no list"],
)
def test_what_is_no_picture_is_refused_with_the_message(images: Any) -> None:
    with pytest.raises(BadMessage, match="images"):
        said(images)


def test_pictures_of_the_bound_fit_into_a_message() -> None:
    data = base64.b64encode(png() + bytes(MAX_IMAGE_BYTES - len(png()))).decode()
    text = json.dumps({"user_id": "a" * 200, "content": "x" * 8000, "images": [{**GOOD, "data": data}]})
    assert len(text) < MAX_BYTES
    assert human(read(text.encode()))
