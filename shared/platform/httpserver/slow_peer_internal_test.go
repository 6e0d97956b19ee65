package httpserver

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// slowConn takes as long for each write as a peer that reads this many bytes a second.
type slowConn struct {
	*httptest.ResponseRecorder
	rate     int
	deadline *time.Time
}

func (s slowConn) SetWriteDeadline(at time.Time) error { *s.deadline = at; return nil }

func (s slowConn) Write(p []byte) (int, error) {
	time.Sleep(time.Duration(len(p)) * time.Second / time.Duration(s.rate))
	return s.ResponseRecorder.Write(p)
}

func TestSlowPeerLosesResponse(t *testing.T) {
	for _, c := range []struct{ rate, write, want int }{
		{1 << 10, 1 << 10, 27 << 10}, // after 27 s: 20 s and a second for each 4 KiB
		{3 << 10, 1 << 10, 241 << 10},
		{3 << 10, 1 << 20, 256 << 10}, // checked after each 64 KiB
		{5 << 10, 1 << 10, 1 << 20},
	} {
		synctest.Test(t, func(t *testing.T) {
			peer := slowConn{httptest.NewRecorder(), c.rate, new(time.Time)}
			w := &response{ResponseWriter: peer, controller: http.NewResponseController(peer), stall: time.Minute}
			LimitStall(w, 20*time.Second)
			var err error
			for err == nil && peer.Body.Len() < 1<<20 {
				_, err = w.Write(make([]byte, c.write))
			}
			if got := peer.Body.Len(); got != c.want || (err == nil) != (c.want == 1<<20) {
				t.Errorf("with %d bytes a second, the peer gets %d, want %d: %v", c.rate, got, c.want, err)
			}
			if _, after := w.Write([]byte("more")); after != err {
				t.Errorf("the next write fails with %v, want %v", after, err)
			}
			if w.finish(time.Now(), 0, 0); err != nil && peer.deadline.After(time.Now()) {
				t.Error("the end of the response may still be written")
			}
		})
	}
}
