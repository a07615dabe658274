"""What a call costs, and how much a model takes, from a list that is installed with us: nothing is looked up."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from shared.models.base import Usage


def cost(model: str, usage: Usage, provider: str, address: str | None = None) -> float:
    """The price of `usage` in dollars; 0.0 for a model that the list does not know.

    Where the list knows whose `address` it is, their price counts, else that of `provider` for a model of that name.
    """
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    # the list counts cached tokens as part of the input, the providers' usage counts them apart
    tokens = Tokens(
        input_tokens=usage.input + usage.cache_read + usage.cache_write,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )
    if address is not None:
        with contextlib.suppress(LookupError):
            return float(calc_price(tokens, model, provider_api_url=address).total_price)
    try:
        return float(calc_price(tokens, model, provider_id=provider).total_price)
    except LookupError:
        return 0.0


def window(model: str, provider: str) -> int | None:
    """Tokens that a model takes at most, as the list knows; None for one that it does not know."""
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    with contextlib.suppress(LookupError):
        return calc_price(Tokens(), model, provider_id=provider).model.context_window
    with contextlib.suppress(LookupError):  # at an address of one's own, by its name
        return calc_price(Tokens(), model).model.context_window
    return None


def priced(model: str, usage: Usage, provider: str, address: str | None = None) -> Usage:
    """`usage` with its cost filled in."""
    return replace(usage, cost=cost(model, usage, provider, address))
