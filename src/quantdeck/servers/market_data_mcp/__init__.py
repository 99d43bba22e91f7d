"""market-data-mcp: what a market has done and where it stands."""

from quantdeck.core.server import Server
from quantdeck.servers import tools

SERVER = Server(
    name="market-data-mcp",
    purpose="Candles, current prices and volatility",
    instructions=(
        "Symbols are trading pairs such as BTC/USD (BTC-USD, btc_usd and BTCUSD are understood), or tickers such as "
        "AAPL where their bars are stored. Changes and volatilities are fractions (0.023 = 2.3 %); volatility is per "
        "bar, not annualised, ATR and range are in units of the price. Times are UTC and name a bar by its open; only "
        "closed bars are given. "
        "get_current_price refuses a price that is too old and says how old it is."
    ),
    tools=tools(
        __name__,
        "get_candles",
        "get_current_price",
        "get_volatility",
    ),
)
