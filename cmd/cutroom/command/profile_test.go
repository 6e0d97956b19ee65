package command

import "testing"

// The default URL has a port for each service. Any other URL in a profile is used for both services.
func TestDefaultURLHasTwoPorts(t *testing.T) {
	const here, there = "http://127.0.0.1:8080", "https://media.example.com"
	for _, c := range []struct {
		kept profile
		want Server
	}{
		{profile{}, Server{URL: here, InferenceURL: "http://127.0.0.1:8081"}},
		{profile{URL: here + "/"}, Server{URL: here, InferenceURL: "http://127.0.0.1:8081"}},
		{profile{URL: "http://localhost:8080"}, Server{URL: "http://localhost:8080", InferenceURL: "http://localhost:8081"}},
		{profile{URL: "http://127.0.0.1:9080"}, Server{URL: "http://127.0.0.1:9080", InferenceURL: "http://127.0.0.1:9080"}},
		{profile{URL: there}, Server{URL: there, InferenceURL: there}},
		{profile{URL: here, InferenceURL: there + "/"}, Server{URL: here, InferenceURL: there}},
		{profile{InferenceURL: there}, Server{URL: here, InferenceURL: there}},
	} {
		if got := c.kept.server(); got != c.want {
			t.Errorf("%+v is at %+v, want %+v", c.kept, got, c.want)
		}
	}
}
