"""The port `coordination`: what replicas of one server must agree on.

`take` (rate limits), `journal` (idempotency: claim and finish), `get` and `put` (the shared cache).
"""

from quantdeck.core.call import Coordination

__all__ = ["Coordination"]
