package gateway_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/media/sniff"
	"cutroom/shared/service/gateway"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/sqlitetest"
)

const maxFile = 1 << 20

func (w *world) files() *gateway.Batches {
	w.t.Helper()
	if !w.setup.batches {
		return nil
	}
	folder := w.t.TempDir()
	db := sqlitetest.Open(w.t, filepath.Join(folder, "cutroom.db"), sqlite.Options{Now: w.now})
	blobs, err := diskblob.Open(filepath.Join(folder, "blobs"))
	must(w.t, err)
	ids := file.NewIDs(w.now, rand.Reader)
	files := file.NewService(file.Config{
		Store: watchedFiles{db.Files(), w.setup.listed}, Blobs: blobs, IDs: ids,
		Cursors: file.NewCursors([]byte("a secret of the tests")), Now: w.now,
	})
	w.batches, w.stored, w.blobs = db.Batches(), files, blobs
	return &gateway.Batches{
		Service: batch.NewService(batch.Config{
			Store: db.Batches(), Files: files, Blobs: blobs, IDs: ids, Now: w.now,
			Storage: batch.Storage{Reservations: db.Files(), Now: w.now},
			Wake:    func(context.Context, batch.Batch) {},
		}),
		Files: files, Blobs: blobs, Detect: sniff.Any, MaxUpload: maxFile,
		Intake: &file.Intake{Reservations: db.Files(), NewID: rand.Text, Now: w.now},
	}
}

// watchedFiles calls a function, if there is one, for each read of a list.
type watchedFiles struct {
	file.Store
	listed func(after string)
}

func (s watchedFiles) List(ctx context.Context, account, after string, limit int, now time.Time) ([]file.File, string, error) {
	if s.listed != nil {
		s.listed(after)
	}
	return s.Store.List(ctx, account, after, limit, now)
}

func form(content []byte, fields ...string) (body []byte, contentType string) {
	var text bytes.Buffer
	writer := multipart.NewWriter(&text)
	for _, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		_ = writer.WriteField(name, value)
	}
	if content != nil {
		part, _ := writer.CreateFormFile("file", "folder/calls.jsonl")
		_, _ = part.Write(content)
	}
	_ = writer.Close()
	return text.Bytes(), writer.FormDataContentType()
}

func (w *world) upload(content []byte, fields ...string) answer {
	w.t.Helper()
	body, kind := form(content, fields...)
	return w.do(w.request(w.t.Context(), http.MethodPost, "/v1/files", studio, bytes.NewReader(body), "Content-Type: "+kind))
}

func (a answer) object(t *testing.T) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(a.body), &object); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return object
}

func TestUploadsAreValidated(t *testing.T) {
	w := newWorld(t, setup{batches: true})
	for _, c := range []struct {
		name    string
		content []byte
		fields  []string
		status  int
		wants   string
	}{
		{"with a purpose", []byte("{}"), []string{"purpose=batch"}, 200, `"purpose":"batch"`},
		{"with a file name that has a folder", []byte("{}"), []string{"purpose=user_data"}, 200, `"filename":"calls.jsonl"`},
		{"of the maximum size", make([]byte, maxFile), []string{"purpose=batch"}, 200, `"bytes":1048576`},
		{"too large", make([]byte, maxFile+1), []string{"purpose=batch"}, 413, "request_too_large"},
		{"much too large", make([]byte, 3*maxFile), []string{"purpose=batch"}, 413, "request_too_large"},
		{"without a purpose", []byte("{}"), nil, 400, `"param":"purpose"`},
		{"with an unknown purpose", []byte("{}"), []string{"purpose=batch_output"}, 400, `"param":"purpose"`},
		{"without a file", nil, []string{"purpose=batch"}, 400, `"param":"file"`},
		{"empty", []byte{}, []string{"purpose=batch"}, 400, `"param":"file"`},
		{"with a short lifetime", []byte("{}"),
			[]string{"purpose=batch", "expires_after[anchor]=created_at", "expires_after[seconds]=3599"}, 400, "seconds"},
		{"with another anchor", []byte("{}"), []string{"purpose=batch", "expires_after[anchor]=x", "expires_after[seconds]=3600"},
			400, "anchor"},
		{"with a long field", []byte("{}"), []string{"purpose=" + strings.Repeat("x", 2000)}, 400, `"param":"purpose"`},
	} {
		if a := w.upload(c.content, c.fields...); a.status != c.status || !strings.Contains(a.body, c.wants) {
			t.Errorf("a file %s: %d %.300s, want %d and %s", c.name, a.status, a.body, c.status, c.wants)
		}
	}
	kept := w.upload([]byte("{}"), "purpose=batch", "expires_after[anchor]=created_at", "expires_after[seconds]=3600").object(t)
	if kept["expires_at"].(float64)-kept["created_at"].(float64) != 3600 {
		t.Errorf("got %v", kept)
	}
	body, kind := form([]byte("a file that breaks off"), "purpose=batch")
	a := w.do(w.request(t.Context(), http.MethodPost, "/v1/files", studio, bytes.NewReader(body[:len(body)-80]),
		"Content-Type: "+kind))
	if a.status != 400 {
		t.Errorf("a truncated form: %d %s", a.status, a.body)
	}
	if a := w.do(w.request(t.Context(), http.MethodPost, "/v1/files", studio, strings.NewReader("{}"))); a.status != 400 {
		t.Errorf("not a form: %d %s", a.status, a.body)
	}
}

func TestFileListsArePaged(t *testing.T) {
	w := newWorld(t, setup{batches: true})
	var ids []string
	for i := range 5 {
		purpose := "purpose=" + []string{"batch", "user_data"}[i%2]
		ids = append([]string{w.upload([]byte("{}"), purpose).object(t)["id"].(string)}, ids...)
	}
	list := func(query string) (got []string, more bool) {
		t.Helper()
		page := w.get("/v1/files?"+query, studio).object(t)
		for _, f := range page["data"].([]any) {
			got = append(got, f.(map[string]any)["id"].(string))
		}
		if len(got) > 0 && (page["first_id"] != got[0] || page["last_id"] != got[len(got)-1]) {
			t.Errorf("got %v", page)
		}
		return got, page["has_more"].(bool)
	}
	for _, c := range []struct {
		query string
		want  []string
		more  bool
	}{
		{"", ids, false}, {"limit=2", ids[:2], true}, {"limit=5", ids, false}, {"limit=2&after=" + ids[1], ids[2:4], true},
		{"after=" + ids[4], nil, false}, {"purpose=user_data", []string{ids[1], ids[3]}, false},
		{"purpose=batch&limit=1&after=" + ids[0], []string{ids[2]}, true}, {"purpose=vision&limit=1", nil, false},
	} {
		if got, more := list(c.query); strings.Join(got, " ") != strings.Join(c.want, " ") || more != c.more {
			t.Errorf("%q: %v, %v; want %v, %v", c.query, got, more, c.want, c.more)
		}
	}
	for _, query := range []string{"limit=0", "limit=10001", "order=asc", "after=x"} {
		if a := w.get("/v1/files?"+query, studio); a.status != 400 {
			t.Errorf("%q: %d", query, a.status)
		}
	}
	if a := w.get("/v1/files/"+ids[0]+"/content", studio); a.body != "{}" || a.header.Get("Content-Disposition") != "attachment" {
		t.Errorf("got %+v", a)
	}
}

// An account reads the rest of one long list at a time. Short lists do not wait for it.
func TestLongListsAreReadInTurn(t *testing.T) {
	entered, leave := make(chan bool, 9), make(chan bool)
	w := newWorld(t, setup{batches: true, listed: func(after string) {
		if after != "" {
			entered <- true
			<-leave
		}
	}})
	for range 3 {
		w.upload([]byte("{}"), "purpose=batch")
	}
	answers := make(chan answer)
	for range 3 {
		go func() { answers <- w.get("/v1/files?purpose=vision&limit=1", studio) }()
	}
	await.Receive(t, "entered", entered)
	for range 3 {
		if a := w.get("/v1/files?limit=1", studio); a.status != 200 {
			t.Errorf("a short list: %d", a.status)
		}
	}
	if len(entered) > 0 {
		t.Error("two long lists are read at once")
	}
	close(leave)
	for range 3 {
		if a := await.Receive(t, "answers", answers); a.status != 200 {
			t.Errorf("a long list: %d", a.status)
		}
	}
}

// See docs/contract/batches.md#calls.
func TestLimitedKeySeesOnlyItsBatches(t *testing.T) {
	w := newWorld(t, setup{batches: true})
	limited := w.limitedKey(func(key *credential.Key) { key.Limits.Models = []string{"other"} })
	wants := map[string]int{"batch_1": 403, "batch_2": 200, "batch_3": 403, "batch_4": 200, "batch_5": 403, "batch_6": 200}
	for id := range wants {
		b := batch.Batch{
			ID: id, Account: "studio", Key: "key_1", Endpoint: "/v1/chat/completions", Input: "file_1", InputBlob: id,
			Status: batch.Validating, CreatedAt: w.now(), ExpiresAt: w.now().Add(time.Hour), OutputLifetime: time.Hour,
		}
		if id == "batch_6" {
			b.Key = credential.KeyID(credential.HashOf(limited))
		}
		must(t, w.batches.Create(t.Context(), b, 0, 0))
		if id < "batch_5" { // the other batches have no known model
			b.Status, b.Model = batch.InProgress, "small"
			if wants[id] == 200 {
				b.Model = "other"
			}
			must(t, w.batches.Change(t.Context(), batch.Validating, b))
		}
	}
	page := w.get("/v1/batches?limit=2", limited).object(t)
	if page["first_id"] != "batch_6" || page["last_id"] != "batch_4" || page["has_more"] != true {
		t.Errorf("the first page is %v", page)
	}
	page = w.get("/v1/batches?limit=2&after=batch_4", limited).object(t)
	if page["first_id"] != "batch_2" || page["last_id"] != "batch_2" || page["has_more"] != false {
		t.Errorf("the last page is %v", page)
	}
	if page = w.get("/v1/batches", studio).object(t); len(page["data"].([]any)) != len(wants) || page["has_more"] != false {
		t.Errorf("a key without limits sees %v", page)
	}
	for id, want := range wants {
		for what, a := range map[string]answer{
			"the record":   w.get("/v1/batches/"+id, limited),
			"cancellation": w.do(w.request(t.Context(), http.MethodPost, "/v1/batches/"+id+"/cancel", limited, nil)),
		} {
			if a.status != want || want == 403 && !strings.Contains(a.body, `"code":"model_not_allowed"`) {
				t.Errorf("%s of %s: %d %s, want %d", what, id, a.status, a.body, want)
			}
		}
	}
}

// Batches of other keys may have used any model.
func TestLimitedKeyReadsOnlyItsResults(t *testing.T) {
	w := newWorld(t, setup{batches: true})
	limited := w.limitedKey(func(key *credential.Key) { key.Limits.Models = []string{"other"} })
	uploaded := w.upload([]byte("{}"), "purpose=user_data").object(t)["id"].(string)
	results := func(key string) string {
		f, err := w.stored.Get(t.Context(), "studio", uploaded)
		must(t, err)
		blob := "results-of-" + key
		must(t, w.blobs.Copy(t.Context(), f.Blob, blob))
		f.ID, f.Key, f.Purpose, f.Blob = "", key, batch.OutputPurpose, blob
		f, err = w.stored.Create(t.Context(), f, 0)
		must(t, err)
		return f.ID
	}
	own, others := results(credential.KeyID(credential.HashOf(limited))), results("key_1")
	if a := w.get("/v1/files/"+others+"/content", limited); a.status != 403 || !strings.Contains(a.body, "model_not_allowed") {
		t.Errorf("the results of another key: %d %s", a.status, a.body)
	}
	for id, key := range map[string]string{own: limited, others: studio, uploaded: limited} {
		if a := w.get("/v1/files/"+id+"/content", key); a.status != 200 {
			t.Errorf("the key's own result: %d %s", a.status, a.body)
		}
	}
}

func (w *world) lineOf(ctx context.Context, body string) gateway.BatchResponse {
	who := credential.Principal{Key: credential.Key{ID: "key_1", Account: "studio"}, Tier: w.setup.tier}
	return w.gateway.BatchCall(ctx, who, catalog.Chat, []byte(body))
}

func TestBatchCallHasBatchPrice(t *testing.T) {
	const row = `
  - {id: small, routes: [chat], context_length: 8192, max_output_length: 1000, price: {input: 1, output: 1, batch: 0.25}, upstreams: [{url: URL0, model: weights}]}
`
	w := newWorld(t, setup{rows: row, upstreams: []*modelServer{newUpstream(t, always(200, whole))}})
	live := w.chat(plain)
	got := w.lineOf(t.Context(), plain)
	if got.Status != 200 || got.Cut || len(got.Used) != 1 {
		t.Fatalf("got %+v", got)
	}
	if live.status != 200 || !strings.Contains(string(got.Body), `"finish_reason":"stop"`) {
		t.Errorf("live call: %s, batch call: %s", live.body, got.Body)
	}
	records := w.recorded(1)
	if used := got.Used[0]; used.Cost*4 != records[0].Cost || used.Cost == 0 || used.Model != "small" || used.Key != "key_1" {
		t.Errorf("used %+v; the live call %+v", used, records[0])
	} else if used.BatchRequests != 1 || used.BatchCost != used.Cost || records[0].BatchRequests+records[0].BatchCost != 0 {
		t.Errorf("batch call used %+v, live call %+v", used, records[0])
	}
	if got := w.lineOf(t.Context(), `{"model":"none","messages":[]}`); got.Status < 400 || len(got.Used) > 0 {
		t.Errorf("got %+v", got)
	}
}

// A live call takes over a batch call's slot, and the batch call is not billed. A batch call never
// takes a slot that a live call uses or waits for.
func TestBatchCallYieldsToLiveCalls(t *testing.T) {
	g := newGate(t)
	w := newWorld(t, setup{rows: narrowRow, upstreams: []*modelServer{g.modelServer}})
	line := func(text string) <-chan gateway.BatchResponse {
		answers := make(chan gateway.BatchResponse, 1)
		go func() { answers <- w.lineOf(t.Context(), strings.Replace(plain, "one two", text, 1)) }()
		return answers
	}
	yielding := line("l0")
	if got := await.Receive(t, "g.entered", g.entered); got != "l0" {
		t.Fatalf("%q arrived first", got)
	}
	first := w.chatAs(t.Context(), studio, "a0")
	if got := await.Receive(t, "g.entered", g.entered); got != "a0" {
		t.Fatalf("%q arrived next", got)
	}
	if got := await.Receive(t, "yielding", yielding); !got.Cut || len(got.Used) > 0 {
		t.Errorf("the yielding call: %+v", got)
	}
	if got := await.Receive(t, "line(\"l1\")", line("l1")); got.Status != 429 || got.RetryAfter == 0 {
		t.Errorf("while a live call has the slot: %+v", got)
	}
	waiting := w.chatAs(t.Context(), studio, "a1")
	w.queued(1)
	g.open <- true // ends the call of l0, whose caller has disconnected
	g.open <- true
	if got := await.Receive(t, "first", first); got.status != 200 {
		t.Errorf("got %+v", got)
	}
	await.Receive(t, "g.entered", g.entered)
	g.open <- true
	if got := await.Receive(t, "waiting", waiting); got.status != 200 {
		t.Errorf("got %+v", got)
	}
	last := line("l2")
	await.Receive(t, "g.entered", g.entered)
	g.open <- true
	if got := await.Receive(t, "last", last); got.Status != 200 || len(got.Used) != 1 {
		t.Errorf("after the other calls: %+v", got)
	}
	w.recorded(2)
}

// A batch call that has reached a model server is billed if it is not retried.
func TestAbandonedBatchCallIsBilled(t *testing.T) {
	g := newGate(t)
	w := newWorld(t, setup{rows: narrowRow, upstreams: []*modelServer{g.modelServer}})
	for _, c := range []struct {
		cause error
		used  int
	}{{gateway.ErrGivenUp, 1}, {context.Canceled, 0}} {
		ctx, cut := context.WithCancelCause(t.Context())
		answers := make(chan gateway.BatchResponse, 1)
		go func() { answers <- w.lineOf(ctx, plain) }()
		await.Receive(t, "g.entered", g.entered)
		cut(c.cause)
		got := await.Receive(t, "answers", answers)
		if !got.Cut || len(got.Used) != c.used || c.used > 0 && got.Used[0].PromptTokens == 0 {
			t.Errorf("%v: %+v", c.cause, got)
		}
		g.open <- true // its caller has disconnected
	}
}

func TestBatchCallsLeaveSlotsFree(t *testing.T) {
	g := newGate(t)
	w := newWorld(t, setup{rows: strings.Replace(narrowRow, "concurrency: 1", "concurrency: 4", 1),
		upstreams: []*modelServer{g.modelServer}})
	answers := make(chan gateway.BatchResponse, 4)
	for range 4 {
		go func() { answers <- w.lineOf(t.Context(), plain) }()
	}
	for range 3 {
		await.Receive(t, "g.entered", g.entered)
	}
	if got := await.Receive(t, "answers", answers); got.Status != 429 {
		t.Errorf("fourth call: %+v", got)
	}
	live := w.chatAs(t.Context(), studio, "live")
	await.Receive(t, "g.entered", g.entered)
	for range 4 {
		g.open <- true
	}
	if got := await.Receive(t, "live", live); got.status != 200 {
		t.Errorf("got %+v", got)
	}
	for range 3 {
		if got := await.Receive(t, "answers", answers); got.Status != 200 {
			t.Errorf("got %+v", got)
		}
	}
}

func TestBatchCallsLeaveHalfOfRates(t *testing.T) {
	w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, always(200, whole))},
		tier: credential.Tier{InferenceRequestsPerMinute: 4}})
	w.stopClock()
	for i := range 2 {
		if got := w.lineOf(t.Context(), plain); got.Status != 200 {
			t.Errorf("call %d: %+v", i, got)
		}
	}
	got := w.lineOf(t.Context(), plain)
	if got.Status != 429 || got.RetryAfter <= 0 || got.RetryAfter > time.Minute {
		t.Fatalf("call over the rate: %+v", got)
	}
	for i := range 2 {
		if a := w.chat(plain); a.status != 200 {
			t.Errorf("live call %d: %+v", i, a)
		}
	}
	w.wait(time.Minute)
	if got := w.lineOf(t.Context(), plain); got.Status != 200 {
		t.Errorf("later: %+v", got)
	}
}

// The bodies of batch calls do not count toward the account's half of the memory. A translation's
// memory is freed if a live call needs it.
func TestBatchCallsLeaveMemoryToLiveCalls(t *testing.T) {
	entered, open := make(chan bool, 16), make(chan bool)
	w := newWorld(t, setup{rows: longRow, bodyWait: await.Max, upstreams: []*modelServer{newUpstream(t, func(c *call) {
		if strings.Contains(c.body, "held") {
			entered <- true
			<-open
		}
		c.json(200, whole)
	})}})
	t.Cleanup(func() { close(open) })
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	of := func(body string, mebibytes int) []byte {
		head, tail, _ := strings.Cut(body, "one two")
		return slices.Concat([]byte(head+"held"), bytes.Repeat([]byte("y"), mebibytes<<20), []byte(tail))
	}
	line := func(route catalog.Route, text []byte) <-chan gateway.BatchResponse {
		answers := make(chan gateway.BatchResponse, 1)
		who := credential.Principal{Key: credential.Key{ID: "key_1", Account: "studio"}}
		go func() { answers <- w.gateway.BatchCall(ctx, who, route, text) }()
		return answers
	}
	chat := of(plain, 28)
	for range 4 {
		line(catalog.Chat, chat)
		await.Receive(t, "entered", entered)
	}
	live := w.request(t.Context(), http.MethodPost, "/v1/chat/completions", studio,
		bytes.NewReader(bytes.Replace(chat, []byte("held"), []byte("live"), 1)))
	if a := w.do(live); a.status != 200 {
		t.Errorf("a live call next to four batch calls: %d %s", a.status, a.body)
	}
	leave()
	ctx = t.Context()
	const message = `{"model":"small","max_tokens":10,"messages":[{"role":"user","content":"one two"}]}`
	half := of(message, 24)
	first := line(catalog.Messages, half)
	await.Receive(t, "entered", entered)
	second := line(catalog.Messages, half)
	await.Receive(t, "entered", entered)
	// The batch calls use 60 of the 64 MiB.
	if got := await.Receive(t, "a response", line(catalog.Messages, of(message, 20))); got.Status != 429 ||
		got.RetryAfter == 0 {
		t.Errorf("over a quarter: %d %s", got.Status, got.Body)
	}
	filler := bytes.Repeat([]byte("x"), 1<<20)
	for _, account := range []string{"studio", "rival"} {
		for range 96 {
			w.gateway.HoldBody(account, 1<<20)
		}
	}
	defer w.hold(third, filler, 4).conn.Close()
	// The live call needs the memory of one of the batch calls.
	var got gateway.BatchResponse
	select {
	case got = <-first:
	case got = <-second:
	case <-time.After(await.Max):
		t.Fatal("no batch call was abandoned for live calls")
	}
	if !got.Cut || len(got.Used) > 0 {
		t.Errorf("abandoned for live calls: %d %s", got.Status, got.Body)
	}
	w.eventually("live calls to finish", func() bool { return w.gateway.BodiesWaiting() == 0 })
}

func TestBatchCallsCountAgainstBudgets(t *testing.T) {
	const row = `
  - {id: small, routes: [chat], context_length: 8192, max_output_length: 10, price: {input: 1, output: 1, batch: 0.25}, upstreams: [{url: URL0, model: weights}]}
`
	store, machine := openBudgets(t, 10_000_000)
	now := standing()
	k, stop := keep(t, store, machine, now)
	ctx, leave := context.WithCancel(t.Context())
	w := newWorld(t, setup{rows: row, budgets: k, upstreams: []*modelServer{newUpstream(t, func(c *call) {
		if strings.Contains(c.body, "held") {
			leave()
			<-c.left
			return
		}
		c.json(200, whole)
	})}})
	got := w.lineOf(t.Context(), plain)
	if got.Status != 200 || len(got.Used) != 1 || got.Used[0].Cost == 0 {
		t.Fatalf("got %+v", got)
	}
	if given := w.lineOf(ctx, strings.Replace(plain, "one two", "held", 1)); !given.Cut || len(given.Used) > 0 {
		t.Errorf("an abandoned call: %+v", given)
	}
	stop() // returns the unused amount
	if used := usedOf(t, store, now()); used != got.Used[0].Cost {
		t.Errorf("the budget has %d used, want the call's cost %d", used, got.Used[0].Cost)
	}
	small, machine := openBudgets(t, 100)
	k, _ = keep(t, small, machine, time.Now)
	w = newWorld(t, setup{rows: row, budgets: k})
	if got := w.lineOf(t.Context(), plain); got.Status != 429 || got.RetryAfter == 0 || len(got.Used) > 0 ||
		!strings.Contains(string(got.Body), "insufficient_quota") {
		t.Errorf("over the budget: %+v", got)
	}
}

func TestBatchesCanBeDisabled(t *testing.T) {
	w := newWorld(t, setup{})
	for _, path := range []string{"/v1/files", "/v1/batches", "/v1/batches/batch_0"} {
		if a := w.get(path, studio); a.status != 404 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}
