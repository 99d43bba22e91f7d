"""What the process has counted, as Prometheus text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from quantdeck.observability.metrics import BOUNDS_MS

if TYPE_CHECKING:
    from quantdeck.app import App

__all__ = ["metrics"]

_BOUNDS = [*(str(bound / 1000) for bound in BOUNDS_MS), "+Inf"]


def metrics(app: App) -> bytes:
    """One scrape."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Observed(app))
    return generate_latest(registry)


class _Observed(Collector):
    def __init__(self, app: App) -> None:
        self._metrics, self._observer = app.metrics, app.runtime.observer
        contracts = [contract for server in app.servers for contract in server.contracts]
        self._invalid = {
            contract.name: {code.code for code in (*contract.errors, *contract.dialect.common) if code.status == 400}
            for contract in contracts
        }
        self._slo_ms = {contract.name: contract.policy.p95_ms for contract in contracts}

    def collect(self) -> Iterator[Metric]:
        limited, backends, in_flight = self._metrics.limited, self._metrics.backends, self._observer.in_flight
        yield self._calls()
        yield self._durations()
        yield self._validation_errors()
        yield _counted("mcp_rate_limit_hits", "Calls refused for coming too fast", "client", limited)
        yield _counted("mcp_backend_errors", "Failures of what stands behind the tools", "backend", backends)
        yield GaugeMetricFamily("quantdeck_calls_in_flight", "Calls being answered", value=in_flight)
        yield from self._objectives()

    def _calls(self) -> Metric:
        family = CounterMetricFamily("mcp_tool_calls", "Calls answered", labels=["tool", "status"])
        for tool, latency in self._metrics.tools.items():
            failed = sum(latency.errors.values())
            family.add_metric([tool, "success"], latency.calls - failed)
            family.add_metric([tool, "error"], failed)
        return family

    def _durations(self) -> Metric:
        family = HistogramMetricFamily("mcp_tool_duration_seconds", "How long answers took", labels=["tool"])
        for tool, latency in self._metrics.tools.items():
            counts = [float(count) for count in accumulate(latency.counts)]
            family.add_metric([tool], list(zip(_BOUNDS, counts, strict=True)), latency.total_ms / 1000)
        return family

    def _validation_errors(self) -> Metric:
        labels = ["tool", "error_type"]
        family = CounterMetricFamily("mcp_validation_errors", "Calls whose arguments were refused", labels=labels)
        for tool, latency in self._metrics.tools.items():
            for code in latency.errors.keys() & self._invalid.get(tool, set()):
                family.add_metric([tool, code], latency.errors[code])
        return family

    def _objectives(self) -> Iterator[Metric]:
        p95 = GaugeMetricFamily("quantdeck_tool_p95_seconds", "Bound under which 95 % of calls stayed", labels=["tool"])
        slo = GaugeMetricFamily("quantdeck_tool_slo_seconds", "What its spec promises for p95", labels=["tool"])
        for tool, latency in self._metrics.tools.items():
            _add_ms(p95, tool, latency.quantile_ms(0.95))
            _add_ms(slo, tool, self._slo_ms.get(tool))
        yield p95
        yield slo


def _counted(name: str, about: str, label: str, counts: dict[str, int]) -> Metric:
    family = CounterMetricFamily(name, about, labels=[label])
    for key, count in counts.items():
        family.add_metric([key], count)
    return family


def _add_ms(family: GaugeMetricFamily, tool: str, value_ms: float | None) -> None:
    if value_ms is not None:
        family.add_metric([tool], value_ms / 1000)
