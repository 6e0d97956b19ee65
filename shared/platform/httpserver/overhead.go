package httpserver

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// OverheadConn closes a connection whose client sends many bytes that are not content. Otherwise, endless empty frames
// of a WebSocket would use up the processor. It allows `burst` bytes without content, and perSecond more each second.
type OverheadConn struct {
	net.Conn
	burst, perSecond  int64
	began             time.Time
	received, content atomic.Int64
}

// AddContent records that this many bytes of content have been read.
func (c *OverheadConn) AddContent(bytes int) { c.content.Add(int64(bytes)) }

func (c *OverheadConn) Read(p []byte) (int, error) {
	overhead := c.received.Load() - c.content.Load()
	if overhead > c.burst+int64(time.Since(c.began).Seconds()*float64(c.perSecond)) {
		c.Close()
		return 0, errors.New("httpserver: the client sends too many bytes without content")
	}
	began := time.Now()
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	if waited := time.Since(began); waited > time.Second {
		c.began = c.began.Add(waited - time.Second) // silence permits no flood after it
	}
	return n, err
}

// OverheadWriter makes an upgraded connection an OverheadConn, which Hijack stores in Conn.
type OverheadWriter struct {
	http.ResponseWriter
	Burst, PerSecond int64
	Conn             *OverheadConn
}

func (w *OverheadWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	network, buffer, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.Conn = &OverheadConn{Conn: network, burst: w.Burst, perSecond: w.PerSecond, began: time.Now()}
	return w.Conn, buffer, nil
}

// SetWriteBuffer sets the size of the system's send buffer of the upgraded connection, in bytes. It fails for
// connections other than TCP.
func (w *OverheadWriter) SetWriteBuffer(bytes int) error {
	tcp, ok := w.Conn.Conn.(interface{ SetWriteBuffer(bytes int) error })
	if !ok {
		return errors.ErrUnsupported
	}
	return tcp.SetWriteBuffer(bytes)
}
