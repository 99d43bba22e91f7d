"""Backtests for other programs, over gRPC: tradestream's contract, and what we say beyond it to one another.

`asked` reads requests, `answering` runs them, `serving` is the process.
"""
