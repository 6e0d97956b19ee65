package batches_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/usage"
	"cutroom/shared/service/batches"
	"cutroom/shared/service/gateway"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
	"cutroom/shared/testkit/sqlitetest"
)

const endpoint = "/v1/chat/completions"

type world struct {
	*testing.T
	db        *sqlite.DB
	folder    string // the blob store's folder
	blobs     *diskblob.Store
	files     *file.Service
	service   *batch.Service
	runner    *batches.Runner
	ahead     atomic.Int64 // how far the clock is ahead, in nanoseconds
	revoked   atomic.Bool
	full      atomic.Bool
	intervals batches.Intervals
	dead      *atomic.Bool                                                 // set when the runner's process has died
	answer    func(ctx context.Context, body string) gateway.BatchResponse // if nil, calls return their bodies
	log       programtest.Output

	mu   sync.Mutex
	made map[string]int  // number of calls per body; may be nil
	tier credential.Tier // every account's tier
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

func (w *world) storage() batch.Storage { return batch.Storage{Reservations: w.db.Files(), Now: w.now} }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, made: map[string]int{}}
	folder := t.TempDir()
	w.db = sqlitetest.Open(t, filepath.Join(folder, "cutroom.db"), sqlite.Options{Now: w.now})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the runner's log:\n%s", w.log.String())
		}
	})
	var err error
	w.folder = filepath.Join(folder, "blobs")
	w.blobs, err = diskblob.Open(w.folder)
	w.must(err)
	ids := file.NewIDs(w.now, rand.Reader)
	w.files = file.NewService(file.Config{Store: w.db.Files(), Blobs: w.blobs, IDs: ids, Now: w.now})
	w.service = batch.NewService(batch.Config{
		Store: w.db.Batches(), Files: w.files, Blobs: w.blobs, IDs: ids, Now: w.now, Storage: w.storage(),
		Wake: func(context.Context, batch.Batch) { w.runner.Wake() },
	})
	w.runner = w.newRunner()
	return w
}

// mortal is a store used by a process that may die. Once the process has died, nothing more is written.
type mortal struct {
	*sqlite.Batches
	dead *atomic.Bool
}

var errDead = errors.New("the process is dead")

func (m mortal) Change(ctx context.Context, from batch.Status, b batch.Batch) error {
	if m.dead.Load() {
		return errDead
	}
	return m.Batches.Change(ctx, from, b)
}

func (m mortal) Save(ctx context.Context, id string, chunks []batch.Chunk, used []usage.Record) error {
	if m.dead.Load() {
		return errDead
	}
	return m.Batches.Save(ctx, id, chunks, used)
}

func (w *world) newRunner() *batches.Runner {
	w.dead = &atomic.Bool{}
	return batches.New(batches.Config{
		Store: mortal{w.db.Batches(), w.dead}, Sweeper: &batch.Sweeper{Store: w.db.Batches(), Blobs: w.blobs, Storage: w.storage(), Now: w.now},
		Storage: w.storage(),
		Files:   w.files, Blobs: w.blobs, Keys: holder{w}, Gateway: caller{w}, Calls: 4, Now: w.now, NewID: rand.Text, Intervals: w.intervals,
		Free: func() (int64, error) {
			if w.full.Load() {
				return 0, nil
			}
			return 1 << 40, nil
		},
		Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
}

func (w *world) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.runner.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	w.Cleanup(stop)
	return stop
}

// holder looks up who holds a key. It fails if the key is revoked.
type holder struct{ *world }

func (h holder) Holder(_ context.Context, account, keyID string) (credential.Principal, error) {
	if h.revoked.Load() {
		return credential.Principal{}, fault.New(fault.Unauthorized, "The API key is not valid.")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return credential.Principal{Key: credential.Key{ID: keyID, Account: account}, Tier: h.tier}, nil
}

type caller struct{ *world }

func (c caller) BatchCall(
	ctx context.Context, who credential.Principal, route catalog.Route, body []byte,
) gateway.BatchResponse {
	c.mu.Lock()
	if c.made != nil {
		c.made[string(body)]++
	}
	answer := c.answer
	c.mu.Unlock()
	if route != catalog.Chat {
		c.Errorf("a call of %s", route)
	}
	if answer != nil {
		return answer(ctx, string(body))
	}
	return answered(who.Account(), who.Key.ID, string(body))
}

func answered(account, key, body string) gateway.BatchResponse {
	return gateway.BatchResponse{Status: 200, Body: []byte(body), Used: []usage.Record{{
		Account: account, Key: key, Model: "m", Day: "2026-02-03", Counts: usage.Counts{Requests: 1, Cost: 3},
	}}}
}

func (w *world) set(answer func(ctx context.Context, body string) gateway.BatchResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

func (w *world) calls() (all, different int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.made {
		all += n
	}
	return all, len(w.made)
}

func bodyOf(n int) string { return fmt.Sprintf(`{"model":"m","n":%d}`, n) }

func lineOf(n int) string {
	return fmt.Sprintf(`{"custom_id": "call-%d", "method": "POST", "url": %q, "body": %s}`, n, endpoint, bodyOf(n))
}

func lines(n int) string {
	var text strings.Builder
	for i := range n {
		text.WriteString(lineOf(i) + "\n")
	}
	return text.String()
}

func (w *world) upload(account string, content io.Reader) file.File {
	w.Helper()
	f, err := w.uploadWithin(account, content, 0)
	w.must(err)
	return f
}

func (w *world) uploadWithin(account string, content io.Reader, limit int64) (file.File, error) {
	w.Helper()
	blob, err := w.files.NewBlob()
	w.must(err)
	size, err := w.blobs.Put(w.Context(), blob, content)
	w.must(err)
	f, err := w.files.Create(w.Context(), file.File{
		Account: account, Filename: "calls.jsonl", MD5: "00000000000000000000000000000000", Size: size, Blob: blob,
		Purpose: batch.InputPurpose, Lifetime: time.Hour,
	}, limit)
	if err != nil {
		w.must(w.blobs.Delete(w.Context(), blob))
	}
	return f, err
}

func (w *world) create(account, input string) batch.Batch {
	w.Helper()
	f := w.upload(account, strings.NewReader(input))
	b, err := w.service.Create(w.Context(), batch.Request{
		Account: account, Key: "key_" + account, Endpoint: endpoint, Input: f.ID,
	})
	w.must(err)
	return b
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) reaches(b batch.Batch, want batch.Status) batch.Batch {
	w.Helper()
	var now batch.Batch
	await.Until(w, string(want), func() bool {
		var err error
		now, err = w.service.Get(w.Context(), b.Account, b.ID)
		w.must(err)
		if now.Status.Ended() && now.Status != want {
			w.Fatalf("ended as %+v, want %s", now, want)
		}
		return now.Status == want
	})
	return now
}

type resultLine struct {
	CustomID string `json:"custom_id"`
	Response *struct {
		StatusCode int `json:"status_code"`
		Body       json.RawMessage
	}
	Error *struct{ Code string }
}

func (w *world) results(account, id string) map[string]resultLine {
	w.Helper()
	all := map[string]resultLine{}
	if id == "" {
		return all
	}
	f, err := w.files.Get(w.Context(), account, id)
	w.must(err)
	content, err := w.blobs.Open(w.Context(), f.Blob, 0, -1)
	w.must(err)
	defer content.Close()
	text, err := io.ReadAll(content)
	w.must(err)
	if int64(len(text)) != f.Size {
		w.Errorf("the file has %d bytes, not %d", len(text), f.Size)
	}
	for _, line := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		var one resultLine
		if err := json.Unmarshal(line, &one); err != nil {
			w.Fatalf("%s: %v", line, err)
		}
		if _, twice := all[one.CustomID]; twice {
			w.Errorf("%s has two results", one.CustomID)
		}
		all[one.CustomID] = one
	}
	return all
}

func (w *world) billed(account string) (calls int64) {
	w.Helper()
	totals, err := w.db.Usage().Totals(w.Context(), account, "2026-02-03", "2026-02-03", usage.All)
	w.must(err)
	for _, total := range totals {
		calls += total.Requests
		if total.Cost != 3*total.Requests || total.Key != "key_"+account {
			w.Errorf("billed %+v", total)
		}
	}
	return calls
}
