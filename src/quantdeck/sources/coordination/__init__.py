"""The port `coordination`: what replicas of one server must agree on.

`take` (rate limits), `journal` (idempotency: claim and finish), `get` and `put` (the shared cache), `first` (names that
may be said once, such as the nonces of signed requests).
"""

from quantdeck.core.call import Coordination

__all__ = ["Coordination"]
