package api

// Endpoint describes a route to tests.
type Endpoint struct {
	Method, Path string
	// Public endpoints require no credential.
	Public bool
}

// Endpoints returns every route of every group.
func Endpoints(c Config) (endpoints []Endpoint) {
	for _, group := range AllGroups() {
		for _, route := range group(&service{Config: c}) {
			endpoints = append(endpoints, Endpoint{route.method, route.path, route.access == public})
		}
	}
	return endpoints
}
