package api

type Endpoint struct {
	Method, Path string
	Public       bool
}

func Endpoints(c Config) (endpoints []Endpoint) {
	for _, group := range AllGroups() {
		for _, route := range group(&service{Config: c}) {
			endpoints = append(endpoints, Endpoint{route.method, route.path, route.access == public})
		}
	}
	return endpoints
}
