"""Markdown as HTML that only looks: no markup of the writer, no image, no address that runs or loads by itself.

Three walls, each enough by itself: the parser takes no HTML, what it makes is cleaned by a list of what is allowed,
and the page's content policy refuses the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from shared.client.text.safe import safe

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_PREFIX = "t-"  # of the classes of highlighted code
_CODE = 60_000  # characters of code that are coloured; more is shown plain
_LONGEST = 1_000_000  # characters that are read as Markdown; more is shown as it is
_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s", "span",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_SCHEMES = {"http", "https", "mailto"}
_ALIGNED = {"left", "center", "right"}


@lru_cache(maxsize=1024)
def markdown(text: str) -> Markup:
    """The text as a page shows it."""
    clear = safe(text)
    if len(clear) > _LONGEST:
        return Markup('<pre class="plain">') + escape(clear) + Markup("</pre>")
    return Markup(_clean(_parser().render(clear)))


def code(text: str, language: str) -> Markup:
    """Source text with its words coloured; plain where the language is unknown or the text is long."""
    return Markup(_clean(_coloured(safe(text), language)))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    class Parser(MarkdownIt):
        def validateLink(self, url: str) -> bool:
            return url.partition(":")[0].strip().lower() in _SCHEMES

    made = Parser("commonmark", {"html": False, "highlight": _fenced}).enable(["table", "strikethrough"])
    made.add_render_rule("image", _image)
    made.add_render_rule("heading_open", _heading)
    made.add_render_rule("heading_close", _heading)
    made.add_render_rule("td_open", _cell)
    made.add_render_rule("th_open", _cell)
    return made


def _image(_renderer: Any, tokens: Sequence[Token], at: int, *_rest: object) -> str:
    """An image is a link that says so: to look at it is to tell somebody that it was looked at."""
    told = escape(tokens[at].content or "image")
    address = str(tokens[at].attrs.get("src", ""))
    return f'<a class="image" href="{escape(address)}">{told}</a>'


def _heading(renderer: Any, tokens: Sequence[Token], at: int, options: Any, _env: object) -> str:
    """Below those of the page itself."""
    level = min(6, int(tokens[at].tag[1:]) + 2)
    tokens[at].tag = f"h{level}"
    return str(renderer.renderToken(tokens, at, options, {}))


def _cell(renderer: Any, tokens: Sequence[Token], at: int, options: Any, _env: object) -> str:
    """Its side as a class: a style of its own would be refused."""
    style = str(tokens[at].attrs.pop("style", ""))
    side = style.rpartition(":")[2].strip()
    if side in _ALIGNED:
        tokens[at].attrs["class"] = side
    return str(renderer.renderToken(tokens, at, options, {}))


def _fenced(text: str, language: str, _attributes: str) -> str:
    return _coloured(text, language) if language else ""


def _coloured(text: str, language: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    if len(text) <= _CODE:
        try:
            lexer = get_lexer_by_name(language, stripnl=False)
        except ClassNotFound:
            return str(escape(text))
        return str(highlight(text, lexer, HtmlFormatter(nowrap=True, classprefix=_PREFIX)))
    return str(escape(text))


@cache
def _classes() -> dict[str, set[str]]:
    from pygments.token import STANDARD_TYPES

    coloured = {f"{_PREFIX}{short}" for short in STANDARD_TYPES.values() if short}
    return {"span": coloured, "a": {"image"}, "td": _ALIGNED, "th": _ALIGNED}


def _clean(html: str) -> str:
    import nh3

    return nh3.clean(
        html,
        tags=_TAGS,
        attributes={"*": set(), "a": {"href"}, "ol": {"start"}},
        allowed_classes=_classes(),
        url_schemes=_SCHEMES,
        url_relative="deny",
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}, "pre": {"tabindex": "0"}},
    )
