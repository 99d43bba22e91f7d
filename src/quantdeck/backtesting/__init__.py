"""Backtests: the engine, which is pure, and in time the service that offers it."""
