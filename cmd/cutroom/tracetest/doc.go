// Package tracetest tests the traces of the one-machine server.
package tracetest
