// Package upstream calls the model servers behind the gateway. A Pool has the upstreams of one
// model. It chooses one that may be called now by its weight, its limit of calls and its circuit
// breaker. A Lease permits one call, over HTTP/1.1 on the caller's goroutine (h1_conn.go), or by
// net/http for TLS, a proxy or a large request. The gateway decides about a failure, and whether
// another upstream is tried.
package upstream
