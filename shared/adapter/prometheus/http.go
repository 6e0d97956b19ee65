package prometheus

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"cutroom/shared/platform/httpserver"
)

type surfaces struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	received *prometheus.CounterVec
	sent     *prometheus.CounterVec
}

func newSurfaces(registry *prometheus.Registry) surfaces {
	return surfaces{
		requests: counter(registry, "cutroom_http_requests_total",
			"Requests, by route and status. An empty route means an unknown path.", "surface", "method", "route", "status"),
		duration: histogram(registry, "cutroom_http_request_duration_seconds", durationBuckets,
			"Time from a request's arrival to the end of its response.", "surface", "route"),
		received: counter(registry, "cutroom_http_received_bytes_total", "Bytes of request bodies.", "surface", "route"),
		sent:     counter(registry, "cutroom_http_sent_bytes_total", "Bytes of response bodies.", "surface", "route"),
	}
}

func (m *Metrics) Surface(name string) httpserver.Observer {
	return surface{newSeries(func(a answered) answeredSeries {
		return answeredSeries{
			requests: m.surfaces.requests.WithLabelValues(name, a.method, a.route, strconv.Itoa(a.status)),
			duration: m.surfaces.duration.WithLabelValues(name, a.route),
			received: m.surfaces.received.WithLabelValues(name, a.route),
			sent:     m.surfaces.sent.WithLabelValues(name, a.route),
		}
	})}
}

type surface struct {
	series *series[answered, answeredSeries]
}

type answered struct {
	method, route string
	status        int
}

type answeredSeries struct {
	requests prometheus.Counter
	duration prometheus.Observer
	received prometheus.Counter
	sent     prometheus.Counter
}

func (s surface) Answered(a httpserver.Answer) {
	of := s.series.of(answered{a.Method, a.Route, a.Status})
	of.requests.Inc()
	of.duration.Observe(a.Duration.Seconds())
	of.received.Add(float64(a.Received))
	of.sent.Add(float64(a.Sent))
}
