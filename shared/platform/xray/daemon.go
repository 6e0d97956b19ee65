package xray

import (
	"fmt"
	"net"
)

const (
	// daemonHeader begins every datagram for the daemon; a document follows.
	daemonHeader = `{"format":"json","version":1}` + "\n"
	// maxDatagram is how long a datagram may be, in bytes; a longer one is dropped.
	maxDatagram = 64<<10 - 512
)

// daemon is the connection to the X-Ray daemon, for the life of the function's process.
type daemon struct{ connection net.Conn }

func newDaemon(address string) (*daemon, error) {
	connection, err := net.Dial("udp", address)
	if err != nil {
		return nil, fmt.Errorf("AWS_XRAY_DAEMON_ADDRESS: %w", err)
	}
	return &daemon{connection}, nil
}

// send sends a span as a datagram. Nobody waits for it: one that cannot be sent, or is
// lost, does not show in the trace.
func (d *daemon) send(span Span) {
	text, err := subsegment(span)
	if err == nil && len(text) <= maxDatagram {
		_, _ = d.connection.Write(append([]byte(daemonHeader), text...))
	}
}
