"""Serves metrics in Prometheus text format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

# Histogram buckets for a run, in seconds, from its acceptance to its end. The time limit of a job is ten minutes.
_RUN_SECONDS = (1, 2, 5, 10, 20, 40, 60, 120, 180, 240, 300, 420, 600)

# Histogram buckets for a live frame, in seconds. A camera sends a frame every 0.03 to 0.07 s.
_PICTURE_SECONDS = (0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.2, 0.5, 1, 5)


class Metrics:
    """The server's metrics: counters and histograms of runs, and gauges."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._runs = Counter("cutroom_engine_runs", "Runs that ended.", ["model", "outcome"], registry=self._registry)
        self._seconds = Histogram(
            "cutroom_engine_run_seconds",
            "Time from the acceptance of a run to its end, including its wait.",
            ["model"],
            buckets=_RUN_SECONDS,
            registry=self._registry,
        )
        self._stages = Counter(
            "cutroom_engine_stage_seconds",
            "Time in the stages of runs. decode and encode overlap with denoise.",
            ["model", "stage"],
            registry=self._registry,
        )

        self._live = Counter(
            "cutroom_engine_live_pictures",
            "Pictures of live sessions that were edited, replaced by newer ones, or not edited.",
            ["model", "outcome"],
            registry=self._registry,
        )
        self._live_seconds = Histogram(
            "cutroom_engine_live_picture_seconds",
            "Time of a live edit, without the wait.",
            ["model"],
            buckets=_PICTURE_SECONDS,
            registry=self._registry,
        )

    def live_picture(self, model: str, outcome: str, seconds: float) -> None:
        """Counts a frame of a live session. The model must be in the map, so that the number of label values is
        limited."""
        self._live.labels(model, outcome).inc()
        if outcome == "edited":
            self._live_seconds.labels(model).observe(seconds)

    def ended(self, model: str, outcome: str, seconds: float, stages: Mapping[str, float]) -> None:
        """Counts a run. The model must be in the map, so that the number of label values is limited."""
        self._runs.labels(model, outcome).inc()
        self._seconds.labels(model).observe(seconds)
        for stage, spent in stages.items():
            self._stages.labels(model, stage).inc(spent)

    def read_off(
        self,
        unfinished: Callable[[], int],
        resident: Callable[[], list[str]],
        memory: Callable[[], Mapping[str, int]],
        live: Callable[[], int],
    ) -> None:
        """Sets the functions that read the gauges: the number of unfinished runs, the pipelines in memory, the
        device's memory in bytes by kind, and the number of live sessions."""

        class Gauges(Collector):
            def collect(self) -> Iterable[Metric]:
                yield GaugeMetricFamily(
                    "cutroom_engine_unfinished_runs", "Running and waiting runs.", value=unfinished()
                )
                yield GaugeMetricFamily("cutroom_engine_live_sessions", "Live sessions.", value=live())
                loaded = GaugeMetricFamily("cutroom_engine_resident", "Pipelines in memory.", labels=["pipeline"])
                for name in resident():
                    loaded.add_metric([name], 1)
                yield loaded
                used = GaugeMetricFamily("cutroom_engine_memory_bytes", "Device memory.", labels=["kind"])
                for kind, size in memory().items():
                    used.add_metric([kind], size)
                yield used

        self._registry.register(Gauges())

    def text(self) -> bytes:
        """Returns the current values of all metrics."""
        return generate_latest(self._registry)
