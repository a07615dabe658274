"""The shapes of secrets: what a key, a token or a password in an address looks like, whoever it belongs to.

One list for all that people and files are shown: logs, the audit log, outputs, listings. What a model reads is
not changed by it, since a model edits the files in which such texts stand.

Each shape has marks, texts without which it is not there: where none of them is, nothing is searched for. The
patterns take time in proportion to the text, whatever it is.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from shared import failpoints

HIDDEN = "[hidden]"
_LEAST = 12  # characters: what is shorter holds none of them
_HELD = 16 * 1024  # characters that wait for the rest of a private key
_WORD = 4096  # the same of a token


class Shape(NamedTuple):
    """What it is, one of which texts it holds, and how it looks; a group `keep` of the pattern stays."""

    what: str
    marks: tuple[str, ...]
    pattern: str


# The left edge: no letter before it, unless that is the `n` of a line break as JSON and repr write it.
_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf]))"
_END = r"(?![A-Za-z0-9])"


def _token(what: str, *prefixes: str, body: str = r"[A-Za-z0-9]", least: int = 20, end: str = "") -> Shape:
    """A prefix that nothing else has, and at least so many characters."""
    heads = "|".join(re.escape(prefix) for prefix in prefixes)
    return Shape(what, prefixes, f"{_EDGE}(?:{heads}){body}{{{least},}}{end}")


_SIGNS = r"[A-Za-z0-9_-]"
_PEM = r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_BREAKS = (
    r"(?:\s|\\[nrt]|[\\\"'+,|>#*]){0,12}"  # between the lines of a key, in a file or in a program's text
)
_VALUE = r"(?![$<{%*(\[])[^\s\"',;)\]}]"  # the beginning of a value, which is no place for one

SHAPES = (
    # -- those of whole texts
    Shape(
        "a private key",
        ("PRIVATE KEY",),
        rf"{_PEM}(?:(?:(?!-----).){{0,{_HELD}}}-----END [A-Z0-9 ]{{0,60}}PRIVATE KEY(?: BLOCK)?-----"
        rf"|{_BREAKS}[A-Za-z0-9+/=]{{16,}}(?:{_BREAKS}[A-Za-z0-9+/=]{{4,}})*)",
    ),
    _token("an age key", "AGE-SECRET-KEY-1", body="[A-Z0-9]", least=40),
    Shape(
        "a password in an address",
        ("://",),
        r"(?P<keep>://)[^\s/:@\"'<>]{0,256}:(?![$<{%*])[^\s/@\"'<>]{1,256}(?=@)",
    ),
    Shape(
        "an authorization",
        ("uthorization", "UTHORIZATION"),
        rf"(?P<keep>(?i:authorization)[\"']?\s{{0,4}}[:=]\s{{0,4}}[\"']?(?i:bearer|basic|token|bot)\s{{1,4}})"
        rf"{_VALUE}{{8,}}",
    ),
    Shape(
        "a key in a header",
        ("pi-key", "pi-Key", "PI-Key", "PI-KEY"),
        rf"(?P<keep>(?i:x-api-key)[\"']?\s{{0,4}}[:=]\s{{0,4}}[\"']?){_VALUE}{{8,}}",
    ),
    Shape(
        "an AWS secret key",
        ("ccess_key", "CCESS_KEY", "ccessKey"),
        r"(?P<keep>(?i:secret_?access_?key)[\"']?\s{0,4}[:=]{1,2}\s{0,4}[\"']?)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])",
    ),
    Shape(
        "a storage key of Azure",
        ("AccountKey=", "SharedAccessKey="),
        r"(?P<keep>(?:Account|SharedAccess)Key=)[A-Za-z0-9+/=]{40,}",
    ),
    # -- those of models' providers
    _token("a key of Anthropic", "sk-ant-", body=_SIGNS, least=8),
    _token("a key of OpenAI", "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-", body=_SIGNS),
    Shape(
        "a key of OpenAI and others",
        ("sk-",),
        rf"{_EDGE}sk-(?:(?=[\w-]{{0,80}}[0-9])(?=[\w-]{{0,80}}[A-Z])[\w-]{{20,}}"
        r"|(?=[a-z0-9]{0,80}[0-9])[a-z0-9]{32,})",
    ),
    _token("a key of Google", "AIza", body=_SIGNS, least=30),
    _token("a token of Hugging Face", "hf_", "api_org_", least=30),
    _token("a key of Groq", "gsk_", least=40),
    _token("a key of xAI", "xai-", least=60),
    _token("a key of Perplexity", "pplx-", least=40),
    _token("a token of Replicate", "r8_", least=30),
    # -- those of hosts of code and packages
    _token("a token of GitHub", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _token("a token of GitHub", "github_pat_", body=r"\w"),
    _token(
        *("a token of GitLab", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-"),
        *("glimt-", "glagent-", "gloas-"),
        body=r"[A-Za-z0-9_.-]",
        least=15,
    ),
    _token("a token of npm", "npm_", least=30),
    _token("a token of PyPI", "pypi-Ag", body=_SIGNS),
    _token("a key of RubyGems", "rubygems_", body="[a-f0-9]", least=40),
    _token("a token of Docker", "dckr_pat_", "dckr_oat_", body=_SIGNS),
    _token("a token of Atlassian", "ATATT3", "ATCTT3", body=r"[A-Za-z0-9_=-]", least=40),
    # -- those of clouds
    Shape(
        "a key of AWS",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        rf"{_EDGE}(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}{_END}",
    ),
    _token("a secret of Google's clients", "GOCSPX-", body=_SIGNS),
    _token("a token of Google", "ya29.", body=_SIGNS),
    _token("a key of Supabase", "sb_secret_", body=_SIGNS, least=6),
    _token("a token of Supabase", "sbp_", body="[a-f0-9]", least=40),
    _token("a token of DigitalOcean", "dop_v1_", "doo_v1_", "dor_v1_", body="[a-f0-9]", least=40),
    _token("a token of Databricks", "dapi", body="[a-f0-9]", least=32, end=_END),
    _token("a key of Heroku", "HRKU-", body=_SIGNS, least=30),
    _token("a key of Tailscale", "tskey-", body=_SIGNS),
    _token("a token of Vault", "hvs.", "hvb.", "hvr.", body=_SIGNS),
    _token("a token of Fly", "fo1_", "fm2_", body=r"[A-Za-z0-9_+/=-]", least=30),
    # -- those of services
    _token(
        *("a key of Stripe", "sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"),
        least=10,
    ),
    _token("a secret of webhooks", "whsec_", body=r"[A-Za-z0-9+/=]"),
    _token("a token of Slack", *(f"xox{kind}-" for kind in "abceoprs"), "xapp-", body=_SIGNS, least=10),
    Shape(
        "a webhook of Slack",
        ("hooks.slack.com/",),
        r"(?P<keep>hooks\.slack\.com/(?:services|workflows|triggers)/)[\w/+-]{20,}",
    ),
    Shape(
        "a webhook of Discord",
        ("/api/webhooks/",),
        r"(?P<keep>discord(?:app)?\.com/api/webhooks/\d{1,25}/)[\w-]{30,}",
    ),
    # Of a bot's token only the part in front of the first dot, the bot's id, is no secret.
    Shape(
        "a token of Discord",
        (".",),
        r"\.(?:(?<=[MNO][DTjz][\w-]{21}\.)|(?<=[MNO][DTjz][\w-]{22}\.)|(?<=[MNO][DTjz][\w-]{24}\.))"
        r"[\w-]{6}\.[\w-]{27,40}(?![\w-])",
    ),
    Shape("a token of Telegram", (":AA",), r"(?<!\d)\d{8,10}:AA[\w-]{33}(?![\w-])"),
    Shape("a key of SendGrid", ("SG.",), rf"{_EDGE}SG\.[\w-]{{16,}}\.[\w-]{{16,}}"),
    _token("a key of Twilio", "SK", body="[0-9a-f]", least=32, end=_END),
    _token("a key of Mailgun", "key-", body="[0-9a-f]", least=32, end=_END),
    _token("a token of Shopify", "shpat_", "shpca_", "shppa_", "shpss_", body="[A-Fa-f0-9]", least=32),
    _token("a key of Linear", "lin_api_", "lin_oauth_", least=30),
    _token("a token of Notion", "ntn_", least=40),
    _token("a token of Figma", "figd_", body=_SIGNS, least=30),
    _token("a token of Grafana", "glsa_", "glc_eyJ", body=r"[\w+/=]", least=30),
    _token("a token of Sentry", "sntrys_", "sntryu_", body=r"[\w+/=.-]", least=30),
    _token("a key of Postman", "PMAK-", body="[a-f0-9-]", least=40),
    _token("a key of New Relic", "NRAK-", body="[A-Z0-9]"),
    _token("a token of 1Password", "ops_eyJ", body=r"[A-Za-z0-9+/=_-]", least=40),
    # Three parts, of which the first two are JSON objects: what begins with `eyJ` alone may be any picture.
    Shape(
        "a JSON Web Token",
        ("eyJ",),
        rf"{_EDGE}eyJ[\w-]{{10,}}\.eyJ[\w-]{{10,}}\.[\w-]{{10,}}",
    ),
)

_MARKS = tuple((number, mark) for number, shape in enumerate(SHAPES) for mark in shape.marks)

# What begins one of them and waits for its rest, where a text comes in pieces.
_BEGIN_ANYWHERE = frozenset({".", "://", "SK", ":AA", "PRIVATE KEY", "/api/webhooks/", "hooks.slack.com/"})
_STARTS = tuple(mark for shape in SHAPES for mark in shape.marks if mark not in _BEGIN_ANYWHERE)
_NAMES = ("authorization", "x-api-key", "secret_access_key", "secretaccesskey")
_PARTS = frozenset(mark[:size] for mark in (*_STARTS, *_NAMES) for size in range(1, len(mark)))
_PART = max(map(len, _PARTS))
_STARTED = re.compile(rf"{_EDGE}(?:{'|'.join(map(re.escape, _STARTS))})\S{{0,{_WORD}}}\Z")
_OPEN = re.compile(r"-----BEGIN(?: [A-Z0-9 ]{0,60}\Z|\Z| [A-Z0-9 ]{0,60}PRIVATE KEY[\w+/=\s\\:,.()<>@-]*\Z)")
_CLOSED = re.compile(r"-----END [A-Z0-9 ]{0,60}-----")
_KEYED = re.compile(
    r"(?:authorization|x-api-key|(?:secret_?)?access_?key)[\"']?\s{0,4}"
    r"(?:[:=]{1,2}\s{0,4}[\"']?(?:[a-z]{1,8}\s{0,4})?[^\s\"',]{0,2048})?\Z",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"-{1,5}\Z|-----B(?:E(?:GI?)?)?\Z"  # of a private key
    r"|:(?:/(?:/[^\s/@\"'<>]{0,600})?)?\Z"  # of an address
    r"|(?:hooks\.slack|discord(?:app)?)\.com/\S{0,200}\Z"
    r"|(?<![\w-])[MNO](?:[DTjz][\w.-]{0,90})?\Z"
    r"|(?<!\d)\d{1,10}(?::(?:A(?:A[\w-]{0,40})?)?)?\Z"
    rf"|{_EDGE}S(?:K[0-9a-f]{{0,40}})?\Z"
)


def hide(text: str) -> str:
    """`text` with `[hidden]` in place of each secret that has one of the shapes."""
    if len(text) < _LEAST or failpoints.without("secret-shapes"):
        return text
    for number in dict.fromkeys([number for number, mark in _MARKS if mark in text]):
        text = _pattern(number).sub(_gone, text)
    return text


def _gone(found: re.Match[str]) -> str:
    return (found.groupdict().get("keep") or "") + HIDDEN


@lru_cache(maxsize=len(SHAPES))
def _pattern(number: int) -> re.Pattern[str]:
    return re.compile(SHAPES[number].pattern, re.DOTALL)


def begun(text: str) -> int:
    """How many characters at the end of `text` may belong to a secret whose rest has not come yet."""
    tail = text[-_HELD:]
    at = tail.rfind("-----BEGIN")
    if at >= 0 and _OPEN.match(tail, at):
        closed = _CLOSED.search(tail, at)
        if not closed:
            return len(tail) - at
        tail = tail[closed.end() :]
    word = tail[-_WORD:]
    found = [pattern.search(word) for pattern in (_KEYED, _STARTED, _OTHERS)]
    return max([_part(word), *(len(word) - one.start() for one in found if one)])


def _part(text: str) -> int:
    """How much of a mark stands at the end of `text`."""
    text = text[-_PART - 1 :]
    low = text.lower()
    for size in range(min(_PART, len(text)), 0, -1):
        if (text[-size:] in _PARTS or low[-size:] in _PARTS) and not text[-size - 1 : -size].isalnum():
            return size
    return 0
