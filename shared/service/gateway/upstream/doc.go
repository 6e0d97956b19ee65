// Package upstream calls the model servers behind the gateway. A Pool contains the upstreams of one model and
// chooses one by weight, call limit and circuit breaker. A Slot permits one call, over HTTP/1.1 on the caller's
// goroutine (h1_conn.go), or through net/http for TLS, a proxy or the embedded server.
package upstream
