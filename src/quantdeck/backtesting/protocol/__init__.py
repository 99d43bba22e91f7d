"""What a backtester and its clients say to each other. `scripts/docs` writes the code for it.

`backtesting.proto`, `marketdata.proto` and `strategies.proto` are tradestream's contract, as far as we speak it; what
we say beyond it is in `quantdeck.proto`, and in its messages at numbers above 1000, where the others pass it over.
"""
