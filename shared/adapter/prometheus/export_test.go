package prometheus

import (
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
)

var descName = regexp.MustCompile(`fqName: "([^"]+)"`)

// Names returns all metric names, including metrics without observations, which a scrape omits.
func (m *Metrics) Names() []string {
	described := make(chan *prometheus.Desc)
	go func() {
		defer close(described)
		m.registry.Describe(described)
	}()
	var names []string
	for desc := range described {
		names = append(names, descName.FindStringSubmatch(desc.String())[1])
	}
	return names
}
