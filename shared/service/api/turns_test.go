package api

import (
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/origin"
)

// named is a store of blobs that hold their names.
type named struct{ blob.Store }

func (named) Open(_ context.Context, name string, _, _ int64) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(name)), nil
}

// slow is a verifier whose files each take until the test ends them.
type slow struct{ begun, end chan string }

func (v slow) Verify(_ context.Context, file *os.File) (origin.Report, error) {
	content, err := io.ReadAll(file)
	v.begun <- string(content)
	<-v.end
	return origin.Report{State: origin.None}, err
}

// An account whose files take long to verify delays another's by one of them, however many it
// has in line. Who waits for too long is told when to come again.
func TestAccountsTakeTurnsToVerify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := slow{make(chan string), make(chan string)}
		c := Config{Blobs: named{}, Verifier: v, Scratch: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
		s := newService(c)
		refused := make(chan error, 8)
		ask := func(account, name string) {
			go func() {
				who := credential.Principal{Key: credential.Key{Account: account}}
				r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
				if err := s.sendCredentials(httptest.NewRecorder(), r, call{who: who}, name, 1, nil); err != nil {
					refused <- err
				}
			}()
			synctest.Wait()
		}
		ask("greedy", "first")
		for _, name := range []string{"second", "third", "fourth"} {
			ask("greedy", name)
		}
		ask("modest", "one")
		var got []string
		for range 2 {
			got = append(got, <-v.begun)
			v.end <- ""
		}
		if want := []string{"first", "one"}; !slices.Equal(got, want) {
			t.Errorf("verified were %v, want %v", got, want)
		}
		<-v.begun
		for range 2 {
			if err := <-refused; !fault.Is(err, fault.Unavailable) {
				t.Errorf("those that wait too long are told %v", err)
			}
		}
		v.end <- ""
		synctest.Wait()
	})
}
