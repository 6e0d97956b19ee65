// Package upstream calls the model servers behind the gateway. A Pool contains the upstreams of one
// model. It chooses an available upstream by weight, call limit and circuit breaker. A Slot permits
// one call, over HTTP/1.1 on the caller's goroutine (h1_conn.go), or through net/http for TLS, a
// proxy or the embedded server. The gateway decides whether a failed call tries another upstream.
package upstream
