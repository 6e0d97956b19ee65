package api

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/origin"
	"cutroom/shared/engine"
)

type named struct{ blob.Store }

func (named) Open(_ context.Context, name string, _, _ int64) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(name)), nil
}

type gifs struct{ named }

func (gifs) Open(_ context.Context, name string, _, _ int64) (io.ReadCloser, error) {
	if strings.HasPrefix(name, "thumbnails/") {
		return nil, fault.New(fault.NotFound, "There is no blob.")
	}
	return io.NopCloser(strings.NewReader("GIF89a\x01\x00\x01\x00\x00\x00\x00 " + name)), nil
}

func (gifs) Put(context.Context, string, io.Reader) (int64, error) { return 0, nil }

func (gifs) Head(context.Context, string) (blob.Info, error) { return blob.Info{}, nil }

type slow struct{ begun, end chan string }

func (v slow) Posters(_ context.Context, _ string, of []engine.Depicted) ([][]byte, error) {
	content, err := os.ReadFile(of[0].Path)
	_, name, _ := strings.Cut(string(content), " ")
	v.begun <- strings.TrimRight(name, " ")
	<-v.end
	return [][]byte{content}, err
}

func (v slow) Verify(_ context.Context, file *os.File) (origin.Report, error) {
	content, err := io.ReadAll(file)
	v.begun <- string(content)
	<-v.end
	return origin.Report{State: origin.None}, err
}

// If two accounts send files that take long to verify, a third account is delayed by only one file, however many
// requests the two send. A request that waits too long is rejected with Retry-After.
func TestAccountsTakeTurnsToVerify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := slow{make(chan string), make(chan string)}
		c := Config{Blobs: named{}, C2PARoutes: C2PARoutes{Verifier: v}, Scratch: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
		s := newService(c)
		takeTurns(t, v, func(account, name string) error {
			who := credential.Principal{Key: credential.Key{Account: account}}
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
			return s.sendCredentials(httptest.NewRecorder(), r, call{who: who}, name, 1, nil)
		})
	})
}

// With a time limit, an error keeps its meaning.
func TestVerifyErrorIsNoTimeout(t *testing.T) {
	s := newService(Config{
		Blobs: named{}, C2PARoutes: C2PARoutes{Verifier: noReader{}, VerifyTime: time.Minute}, Scratch: t.TempDir(),
		Logger: slog.New(slog.DiscardHandler),
	})
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	if err := s.sendCredentials(httptest.NewRecorder(), r, call{}, "blob", 1, nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v", err)
	}
}

type noReader struct{}

func (noReader) Verify(context.Context, *os.File) (origin.Report, error) {
	return origin.Report{}, origin.ErrNoReader
}

// A file that takes long and cannot be read is read only once in ten minutes.
func TestSlowFileIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		v := unreadable{&reads}
		s := newService(Config{Blobs: named{}, C2PARoutes: C2PARoutes{Verifier: v}, Scratch: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
		for range 3 {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
			if err := s.sendCredentials(w, r, call{}, "blob", 1, nil); err != nil || !strings.Contains(w.Body.String(), origin.Unreadable) {
				t.Errorf("%v: %s", err, w.Body)
			}
		}
		if reads.Load() != 1 {
			t.Errorf("the file was read %d times", reads.Load())
		}
		time.Sleep(slowFileTime)
		_ = s.sendCredentials(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), call{}, "blob", 1, nil)
		if reads.Load() != 2 {
			t.Error("the file is never read again")
		}
	})
}

type unreadable struct{ reads *atomic.Int64 }

func (u unreadable) Verify(context.Context, *os.File) (origin.Report, error) {
	u.reads.Add(1)
	time.Sleep(5 * time.Second)
	return origin.Report{State: origin.Unreadable}, nil
}

func TestAccountsTakeTurnsForThumbnails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := slow{make(chan string), make(chan string)}
		known, err := catalog.Default("gen")
		if err != nil {
			t.Fatal(err)
		}
		c := Config{Blobs: gifs{}, FileRoutes: FileRoutes{Posters: v}, Catalog: known, Scratch: t.TempDir(),
			Logger: slog.New(slog.DiscardHandler)}
		s := newService(c)
		takeTurns(t, v, func(account, name string) error {
			_, err := s.makeThumbnail(t.Context(), file.File{Account: account, Blob: name, Size: 100})
			return err
		})
	})
}

type pngs struct{ named }

func (pngs) Open(context.Context, string, int64, int64) (io.ReadCloser, error) {
	var content bytes.Buffer
	err := png.Encode(&content, image.NewGray(image.Rect(0, 0, 8, 8)))
	return io.NopCloser(&content), err
}

type stalled struct {
	*httptest.ResponseRecorder
	writes chan bool
	end    chan struct{}
}

func (s stalled) Write(text []byte) (int, error) {
	select {
	case s.writes <- true:
	case <-s.end:
	}
	<-s.end
	return s.ResponseRecorder.Write(text)
}

func TestSlowReadersOfJPEGsDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(Config{Blobs: pngs{}, Scratch: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
		send := func(w http.ResponseWriter, account string) error {
			jobs := []job.Job{{Account: account, Result: &job.Result{}}}
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
			return s.sendImages(w, r, jobs, imageFormat{jpeg: true, quality: 90})
		}
		end := make(chan struct{})
		for _, account := range []string{"one", "two", "three"} {
			go send(stalled{httptest.NewRecorder(), nil, end}, account)
		}
		for range ownImageResponses {
			go send(stalled{httptest.NewRecorder(), nil, end}, "one")
		}
		synctest.Wait()
		w := httptest.NewRecorder()
		if err := send(w, "fast"); err != nil || !strings.HasSuffix(w.Body.String(), "]}") {
			t.Errorf("%v %s", err, w.Body)
		}
		late := httptest.NewRecorder()
		go send(late, "one")
		synctest.Wait()
		if late.Body.Len() > 0 {
			t.Error("an account has as many unread responses as it likes")
		}
		close(end)
		synctest.Wait()
		if !strings.HasSuffix(late.Body.String(), "]}") {
			t.Errorf("a response that waited is %q", late.Body)
		}
	})
}

// Unread pictures and validation errors hold little memory, because a server has thousands of connections.
func TestUnreadResponsesHoldLittleMemory(t *testing.T) {
	const connections, size, most = 64, 1 << 20, 16
	s := newService(Config{Blobs: poster{}, Logger: slog.New(slog.DiscardHandler)})
	for name, send := range map[string]func(http.ResponseWriter, *http.Request) error{
		"pictures": func(w http.ResponseWriter, r *http.Request) error {
			return s.sendPicture(w, r, blobRange{"poster", 0, size}, forAnHour, `"tag"`, "inline")
		},
		"problems": func(w http.ResponseWriter, r *http.Request) error {
			text := json.RawMessage(`["` + strings.Repeat("a", size) + `"]`)
			s.fail(w, r, problems{fieldProblem("size_bytes", "int_type", text, "Input should be a valid integer", nil)})
			return nil
		},
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		writes, end := make(chan bool), make(chan struct{})
		var group sync.WaitGroup
		for range connections {
			group.Go(func() {
				r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
				if err := send(stalled{httptest.NewRecorder(), writes, end}, r); err != nil {
					t.Error(err)
				}
			})
			<-writes
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if held := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20; held > most {
			t.Errorf("%d unread %s hold %d MiB", connections, name, held)
		}
		close(end)
		group.Wait()
	}
}

type poster struct{ named }

func (poster) Open(_ context.Context, _ string, _, length int64) (io.ReadCloser, error) {
	return io.NopCloser(io.LimitReader(zeros{}, length)), nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// takeTurns sends requests from several accounts for files that block until the test releases them.
func takeTurns(t *testing.T, v slow, send func(account, name string) error) {
	t.Helper()
	refused := make(chan error, 8)
	ask := func(account string, names ...string) {
		for _, name := range names {
			go func() {
				if err := send(account, name); err != nil {
					refused <- err
				}
			}()
			synctest.Wait()
		}
	}
	ask("greedy", "first", "second", "third", "fourth")
	ask("modest", "one", "two")
	ask("late", "only")
	got := []string{<-v.begun, <-v.begun}
	v.end <- "" // whichever file it is
	got = append(got, <-v.begun)
	slices.Sort(got[:2])
	if want := []string{"first", "one", "only"}; !slices.Equal(got, want) {
		t.Errorf("served %v, want %v", got, want)
	}
	for range 4 {
		if err := <-refused; !fault.Is(err, fault.Unavailable) {
			t.Errorf("requests that wait too long receive %v", err)
		}
	}
	for range 2 {
		v.end <- ""
	}
	synctest.Wait()
}
