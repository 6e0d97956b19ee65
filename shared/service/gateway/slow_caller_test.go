package gateway

import (
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// slowConn takes as long for each write as a caller that reads this many bytes a second.
type slowConn struct {
	*httptest.ResponseRecorder
	rate int
}

func (s slowConn) Write(p []byte) (int, error) {
	time.Sleep(time.Duration(len(p)) * time.Second / time.Duration(s.rate))
	return s.ResponseRecorder.Write(p)
}

// A stream occupies a place on its server until the caller has read it.
func TestSlowCallerLosesStream(t *testing.T) {
	for _, c := range []struct{ rate, want int }{
		{1 << 10, 27 << 10}, // after 27 s: 20 s and a second for each 4 KiB
		{3 << 10, 241 << 10},
		{5 << 10, 1 << 20},
	} {
		synctest.Test(t, func(t *testing.T) {
			caller := slowConn{httptest.NewRecorder(), c.rate}
			stream := newStreamWriter(caller, 0, false)
			var err error
			for err == nil && caller.Body.Len() < 1<<20 {
				stream.out = append(stream.out, make([]byte, 1<<10)...)
				err = stream.send()
			}
			if got := caller.Body.Len(); got != c.want || (err == nil) != (c.want == 1<<20) {
				t.Errorf("with %d bytes a second, the caller gets %d, want %d: %v", c.rate, got, c.want, err)
			}
			stream.out = []byte("data: more")
			if after := stream.send(); after != err {
				t.Errorf("the next write fails with %v, want %v", after, err)
			}
		})
	}
}
