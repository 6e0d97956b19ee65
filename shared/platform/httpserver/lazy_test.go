package httpserver_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"cutroom/shared/platform/httpserver"
)

func lazyPipe(t *testing.T) (lazy *httpserver.LazyConn, peer net.Conn) {
	t.Helper()
	own, peer := net.Pipe()
	t.Cleanup(func() { own.Close(); peer.Close() })
	return &httpserver.LazyConn{Conn: own}, peer
}

func TestLazyDeadlinesAreExact(t *testing.T) {
	const second = time.Second
	for name, deadlines := range map[string][]time.Duration{
		"one":                        {7 * second},
		"earlier than before":        {60 * second, 2 * second},
		"later than before":          {2 * second, 60 * second},
		"none between":               {2 * second, 0, 60 * second},
		"after an abort":             {2 * second, -1, 0, 8 * second},
		"after an abort and one":     {2 * second, -1, 8 * second},
		"later, earlier, then later": {60 * second, 3 * second, 310 * second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lazy, _ := lazyPipe(t)
				began := time.Now()
				for _, d := range deadlines {
					at := began.Add(d)
					switch d {
					case 0:
						at = time.Time{}
					case -1:
						at = time.Unix(1, 0)
					}
					if err := lazy.SetDeadline(at); err != nil {
						t.Fatal(err)
					}
				}
				want := deadlines[len(deadlines)-1]
				for _, use := range []func([]byte) (int, error){lazy.Read, lazy.Write} {
					if _, err := use(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("the error is %v", err)
					}
					if took := time.Since(began); took != want {
						t.Errorf("it waited for %s, not %s", took, want)
					}
				}
			})
		})
	}
}

func TestLazyConnLosesNothingToItsTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lazy, peer := lazyPipe(t)
		if err := lazy.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := lazy.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		go func() {
			for _, c := range []byte("abc") {
				time.Sleep(time.Hour)
				peer.Write([]byte{c})
			}
		}()
		got := make([]byte, 3)
		if _, err := io.ReadFull(lazy, got); err != nil || string(got) != "abc" {
			t.Errorf("read %q, %v", got, err)
		}
		read := make(chan string)
		go func() {
			var all []byte
			for one := make([]byte, 1); len(all) < 3; all = append(all, one...) {
				time.Sleep(time.Hour)
				peer.Read(one)
			}
			read <- string(all)
		}()
		if n, err := lazy.Write([]byte("def")); n != 3 || err != nil {
			t.Errorf("wrote %d bytes, %v", n, err)
		}
		if all := <-read; all != "def" {
			t.Errorf("the peer read %q", all)
		}
	})
}

func TestLazyAbortEndsAReadInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lazy, _ := lazyPipe(t)
		failed := make(chan error)
		go func() {
			_, err := lazy.Read(make([]byte, 1))
			failed <- err
		}()
		synctest.Wait()
		lazy.SetReadDeadline(time.Unix(1, 0))
		if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
	})
}
