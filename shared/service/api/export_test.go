package api

// Endpoint is what tests see of a route.
type Endpoint struct {
	Method, Path string
	// Public endpoints ask for no credential.
	Public bool
}

// Endpoints gives every route of every group.
func Endpoints(c Config) (endpoints []Endpoint) {
	for _, group := range allGroups() {
		for _, route := range group(&service{Config: c}) {
			endpoints = append(endpoints, Endpoint{route.method, route.path, route.access == public})
		}
	}
	return endpoints
}
