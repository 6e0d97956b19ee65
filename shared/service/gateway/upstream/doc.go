// Package upstream calls the model servers behind the gateway. A Pool has those of
// one model: it chooses one that may be called now by its weight, its limit of
// calls and its circuit breaker. A Lease is the right to make one call, over
// HTTP/1.1 on the caller's goroutine (h1_conn.go), or by net/http where there is
// TLS, a proxy or a large request. What a failure means for the caller, and
// whether another upstream is tried, the gateway decides.
package upstream
