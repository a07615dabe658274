"""One person's or program's line to the cluster: what gateways stand on."""

from shared.visitor.visitor import Visitor
from shared.visitor.words import Heard, Sent

__all__ = ["Heard", "Sent", "Visitor"]
