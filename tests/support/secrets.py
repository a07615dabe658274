"""Texts that have the shapes of secrets, and are none: made up here, piece by piece, by the seed of a generator.

By what it is: texts, each with the part of it that nobody may be shown.
"""

from __future__ import annotations

import base64
import random
import string

_CHANCE = random.Random(20260714)
_LETTERS = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"


def _some(count: int, signs: str = _LETTERS) -> str:
    text = "".join(_CHANCE.choice(signs) for _ in range(count))
    return f"{text[:-2]}7Q" if signs == _LETTERS else text  # a digit and a capital, as real ones have


def _each(*texts: str) -> list[tuple[str, str]]:
    return [(text, text[-16:]) for text in texts]


def _json(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _pem(kind: str, lines: int = 12) -> str:
    body = "\n".join(_some(64) for _ in range(lines))
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"


_HEAD, _BODY = _json('{"alg":"HS256"}'), _json('{"sub":"1234567890"}')
KEY = _pem("OPENSSH PRIVATE KEY")
_KEYS = [KEY, _pem("RSA PRIVATE KEY"), _pem("PRIVATE KEY"), _pem("PGP PRIVATE KEY BLOCK")]
_ENCRYPTED = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123\n\n"
_KEYS.append(_pem("EC PRIVATE KEY").replace("KEY-----\n", f"KEY-----\n{_ENCRYPTED}", 1))

SECRETS: dict[str, list[tuple[str, str]]] = {
    "a private key": [(key, key.splitlines()[6]) for key in _KEYS],
    "an age key": _each("AGE-SECRET-KEY-1" + _some(58, string.ascii_uppercase)),
    "a password in an address": [
        ("postgres://ada:pass-Word77@db.example/x", "pass-Word77"),
        ("https://x-token:abcdef0123@git.example/a.git", "abcdef0123"),
    ],
    "an authorization": [
        ("Authorization: Bearer abcdefghij0123456789", "abcdefghij"),
        ("authorization: basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNz"),
    ],
    "a key in a header": [("x-api-key: 0123456789abcdef", "0123456789abcdef")],
    "an AWS secret key": [(f"aws_secret_access_key = {(key := _some(40))}", key)],
    "a storage key of Azure": [(f"AccountKey={(key := _some(86))}==", key)],
    "a key of Anthropic": _each("sk-ant-api03-" + _some(95), "sk-ant-" + _some(20)),
    "a key of OpenAI": _each("sk-proj-" + _some(80), "sk-or-v1-" + _some(64, _HEX)),
    "a key of OpenAI and others": _each("sk-" + _some(48), "sk-" + "7f" + _some(30, _HEX)),
    "a key of Google": _each("AIza" + _some(35)),
    "a token of Hugging Face": _each("hf_" + _some(34)),
    "a key of Groq": _each("gsk_" + _some(52)),
    "a key of xAI": _each("xai-" + _some(80)),
    "a key of Perplexity": _each("pplx-" + _some(48)),
    "a token of Replicate": _each("r8_" + _some(37)),
    "a token of GitHub": _each(
        *(f"gh{kind}_" + _some(36) for kind in "pousr"), f"github_pat_{_some(22)}_{_some(59)}"
    ),
    "a token of GitLab": _each("glpat-" + _some(20), "glrt-" + _some(20), "gldt-" + _some(20)),
    "a token of npm": _each("npm_" + _some(36)),
    "a token of PyPI": _each("pypi-AgEIcHlwaS5vcmc" + _some(80)),
    "a key of RubyGems": _each("rubygems_" + _some(48, _HEX)),
    "a token of Docker": _each("dckr_pat_" + _some(27)),
    "a token of Atlassian": _each("ATATT3" + _some(186)),
    "a key of AWS": _each("AKIA" + "IOSFODNN7EXAMPLE", "ASIA" + "IOSFODNN7EXAMPLE"),
    "a secret of Google's clients": _each("GOCSPX-" + _some(28)),
    "a token of Google": _each("ya29." + _some(60)),
    "a key of Supabase": _each("sb_secret_" + _some(30)),
    "a token of Supabase": _each("sbp_" + _some(40, _HEX)),
    "a token of DigitalOcean": _each("dop_v1_" + _some(64, _HEX)),
    "a token of Databricks": _each("dapi" + _some(32, _HEX)),
    "a key of Heroku": _each("HRKU-" + _some(40)),
    "a key of Tailscale": _each("tskey-auth-" + _some(30)),
    "a token of Vault": _each("hvs." + _some(90)),
    "a token of Fly": _each("fo1_" + _some(43)),
    "a key of Stripe": _each("sk_live_" + _some(24), "rk_live_" + _some(24), "sk_test_" + _some(24)),
    "a secret of webhooks": _each("whsec_" + _some(32)),
    "a token of Slack": _each("xoxb-1234567890-" + _some(24), "xoxp-1234567890-" + _some(24), "xapp-1-" + _some(24)),
    "a webhook of Slack": _each("https://hooks.slack.com/services/T0000/B0000/" + _some(24)),
    "a webhook of Discord": _each("https://discord.com/api/webhooks/123456789012345678/" + _some(68)),
    "a token of Discord": _each(
        f"MTIzNDU2Nzg5MDEyMzQ1Njc4.GaBcDe.{_some(38)}", f"MTIzNDU2Nzg5MDEyMzQ1Njc4OQ.GaBcDe.{_some(38)}"
    ),
    "a token of Telegram": _each("123456789:AA" + _some(33)),
    "a key of SendGrid": _each(f"SG.{_some(22)}.{_some(43)}"),
    "a key of Twilio": _each("SK" + _some(32, _HEX)),
    "a key of Mailgun": _each("key-" + _some(32, _HEX)),
    "a token of Shopify": _each("shpat_" + _some(32, _HEX)),
    "a key of Linear": _each("lin_api_" + _some(40)),
    "a token of Notion": _each("ntn_" + _some(46)),
    "a token of Figma": _each("figd_" + _some(40)),
    "a token of Grafana": _each(f"glsa_{_some(32)}_{_some(8, _HEX)}"),
    "a token of Sentry": _each("sntrys_eyJ" + _some(60)),
    "a key of Postman": _each(f"PMAK-{_some(24, _HEX)}-{_some(34, _HEX)}"),
    "a key of New Relic": _each("NRAK-" + _some(27, string.ascii_uppercase)),
    "a token of 1Password": _each("ops_eyJ" + _some(250)),
    "a JSON Web Token": _each(f"{_HEAD}.{_BODY}.{_some(43)}"),
}  # fmt: skip
