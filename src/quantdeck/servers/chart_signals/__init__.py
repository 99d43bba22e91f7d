"""chart-signals: indicators and crossings of stocks and coins, and alerts of them."""

from quantdeck.core.server import ResourceTemplate, Server
from quantdeck.servers import tools
from quantdeck.servers.chart_signals.alert_ring import alert_ring
from quantdeck.servers.chart_signals.watching import watch

SERVER = Server(
    name="chart-signals",
    purpose="Indicators, crossings, market status and alerts of stocks and crypto",
    instructions=(
        "Only closed bars count; times name a bar by its open, in UTC. `stale` means that bars are missing although "
        "the market is open. RSI is 0 to 100; averages, macd and bands are in units of the price. BTC, ETH, DOGE and "
        "SHIB mean the coin in dollars; name any other coin as a pair, such as SOL/USD. Alerts wait in list_alerts: "
        "ask it, since many clients show no notifications."
    ),
    tools=tools(
        __name__,
        "get_signals",
        "get_watchlist",
        "check_market_status",
        "get_storage_info",
        "get_capabilities",
        "subscribe_alerts",
        "unsubscribe_alerts",
        "list_alerts",
    ),
    templates=(
        ResourceTemplate(
            uri_template="chart-signals://alerts/{subscription_id}", read=alert_ring, mime_type="application/json"
        ),
    ),
    background=(watch,),
)
