package prometheus

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"cutroom/shared/httpserver"
)

// surfaces are the metrics of HTTP surfaces.
type surfaces struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	received *prometheus.CounterVec
	sent     *prometheus.CounterVec
}

func newSurfaces() surfaces {
	return surfaces{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cutroom_http_requests_total", Help: "Requests, by route and how they were answered. An empty route is a path at which there is nothing.",
		}, []string{"surface", "method", "route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cutroom_http_request_duration_seconds", Help: "From a request's arrival to the end of its answer.", Buckets: durationBuckets,
		}, []string{"surface", "route"}),
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cutroom_http_received_bytes_total", Help: "Bytes of requests' bodies.",
		}, []string{"surface", "route"}),
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cutroom_http_sent_bytes_total", Help: "Bytes of answers' bodies.",
		}, []string{"surface", "route"}),
	}
}

func (s surfaces) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.requests, s.duration, s.received, s.sent}
}

// Surface gives what counts the requests of an HTTP surface, such as "media".
func (m *Metrics) Surface(name string) httpserver.Observer { return surface{name, m.surfaces} }

type surface struct {
	name string
	surfaces
}

// Answered counts a request.
func (s surface) Answered(a httpserver.Answer) {
	s.requests.WithLabelValues(s.name, a.Method, a.Route, strconv.Itoa(a.Status)).Inc()
	s.duration.WithLabelValues(s.name, a.Route).Observe(a.Duration.Seconds())
	s.received.WithLabelValues(s.name, a.Route).Add(float64(a.Received))
	s.sent.WithLabelValues(s.name, a.Route).Add(float64(a.Sent))
}
