package batches_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/fault"
	"cutroom/shared/service/batches"
	"cutroom/shared/service/gateway"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/racetest"
)

// hold blocks calls until the returned channel is closed.
func (w *world) hold(account string) (release chan struct{}) {
	release = make(chan struct{})
	w.set(func(ctx context.Context, body string) gateway.BatchResponse {
		select {
		case <-release:
			return answered(account, "key_"+account, body)
		case <-ctx.Done():
			return gateway.BatchResponse{Cut: true}
		}
	})
	return release
}

// answerSlowly slows down calls, so that the runner notices the end of a batch before its thousands
// of calls are done.
func (w *world) answerSlowly() {
	w.set(func(_ context.Context, body string) gateway.BatchResponse {
		time.Sleep(20 * time.Millisecond)
		return answered("acme", "key_acme", body)
	})
}

func TestBatchCompletes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run()
	b := w.reaches(w.create("acme", lines(20)), batch.Completed)
	if b.Total != 20 || b.Answered != 20 || b.Failed != 0 || b.Failures != "" || b.Model != "m" {
		t.Errorf("got %+v", b)
	}
	results := w.results("acme", b.Output)
	for n := range 20 {
		if got := results[fmt.Sprintf("call-%d", n)]; got.Response == nil || string(got.Response.Body) != bodyOf(n) {
			t.Errorf("call %d: %+v", n, got)
		}
	}
	if got := w.billed("acme"); got != 20 || len(results) != 20 {
		t.Errorf("%d calls were billed, %d answered", got, len(results))
	}
	await.Until(w, "the blobs of the batch are deleted", func() bool {
		known, err := w.db.Batches().Known(t.Context(), b.ID)
		_, lost := w.blobs.Head(t.Context(), b.InputBlob)
		return err == nil && !known && fault.Is(lost, fault.NotFound)
	})
}

// heldInputs holds back the inputs of some batches.
type heldInputs struct {
	batches.Blobs
	held    map[string]bool
	opened  *atomic.Int64
	release chan struct{}
}

func (h heldInputs) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if h.held[name] {
		h.opened.Add(1)
		select {
		case <-h.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return h.Blobs.Open(ctx, name, offset, length)
}

func TestInputsAreCheckedInTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	blobs := heldInputs{w.blobs, map[string]bool{}, new(atomic.Int64), make(chan struct{})}
	var all []batch.Batch
	for n := range 5 {
		all = append(all, w.create("acme", lines(n+1)))
		blobs.held[all[n].InputBlob] = true
	}
	w.runner.WithBlobs(blobs)
	w.run()
	await.Until(w, "an input is being checked", func() bool { return blobs.opened.Load() > 0 })
	w.reaches(w.create("rival", lines(1)), batch.Completed)
	if n := blobs.opened.Load(); n != 1 {
		t.Errorf("%d inputs of one account were checked at once", n)
	}
	close(blobs.release)
	for _, b := range all {
		w.reaches(b, batch.Completed)
	}
}

// Each call has exactly one result and is billed once.
func TestBatchSurvivesRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(func(ctx context.Context, body string) gateway.BatchResponse {
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return gateway.BatchResponse{Cut: true}
		}
		return answered("acme", "key_acme", body)
	})
	b := w.create("acme", lines(1000))
	for round := range 4 {
		stop := w.run()
		await.Until(w, "calls", func() bool {
			_, different := w.calls()
			return different > 150*(round+1)
		})
		stop()
		w.runner = w.newRunner()
	}
	w.run()
	b = w.reaches(b, batch.Completed)
	if results := w.results("acme", b.Output); len(results) != 1000 || b.Answered != 1000 {
		t.Errorf("%d results of %+v", len(results), b)
	}
	if got := w.billed("acme"); got != 1000 {
		t.Errorf("%d calls were billed", got)
	}
}

// Calls that fail with internal errors are tried up to three times. Permanent rejections are not retried.
func TestTemporaryFailuresAreRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tries := map[string]int{}
	w.set(func(_ context.Context, body string) gateway.BatchResponse {
		w.mu.Lock()
		defer w.mu.Unlock()
		tries[body]++
		switch n := tries[body]; {
		case body == bodyOf(0) && n < 3:
			return gateway.BatchResponse{Status: 429, Body: []byte(`{}`), RetryAfter: time.Second}
		case body == bodyOf(1) && n < 3:
			return gateway.BatchResponse{Cut: true}
		case body == bodyOf(2) && n < 3:
			return gateway.BatchResponse{Status: 502, Body: []byte(`{}`), RetryAfter: time.Second}
		case body == bodyOf(3):
			return gateway.BatchResponse{Status: 500, Body: []byte(`{"error": "<broken>"}`)}
		case body == bodyOf(4):
			return gateway.BatchResponse{Status: 400, Body: []byte("{\n\"error\": 1}")}
		}
		return answered("acme", "key_acme", body)
	})
	w.run()
	b := w.reaches(w.create("acme", lines(6)), batch.Completed)
	failures := w.results("acme", b.Failures)
	if b.Answered != 4 || b.Failed != 2 || len(w.results("acme", b.Output)) != 4 || len(failures) != 2 {
		t.Errorf("got %+v, failures %+v", b, failures)
	}
	for id, status := range map[string]int{"call-3": 500, "call-4": 400} {
		if got := failures[id]; got.Response == nil || got.Response.StatusCode != status {
			t.Errorf("%s: %+v", id, got)
		}
	}
	for n, want := range []int{3, 3, 3, 3, 1, 1} {
		if got := tries[bodyOf(n)]; got != want {
			t.Errorf("call %d was made %d times, want %d", n, got, want)
		}
	}
	if got := w.billed("acme"); got != 4 {
		t.Errorf("%d calls were billed", got)
	}
}

func TestInvalidJSONResponseFailsOnlyItsCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(func(_ context.Context, body string) gateway.BatchResponse {
		answer := answered("acme", "key_acme", body)
		if body == bodyOf(1) {
			answer.Body = []byte(strings.Repeat("[", 100_000))
		}
		return answer
	})
	w.run()
	b := w.reaches(w.create("acme", lines(3)), batch.Completed)
	failure := w.results("acme", b.Failures)["call-1"]
	if b.Answered != 2 || b.Failed != 1 || failure.Error == nil || failure.Error.Code != "server_error" {
		t.Errorf("got %+v, %+v", b, failure)
	}
	if got := w.billed("acme"); got != 3 {
		t.Errorf("%d calls were billed", got)
	}
}

func TestInputErrorsAreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run()
	with := func(from, to string) string { return strings.Replace(lineOf(1), from, to, 1) }
	long := strings.Repeat("x", gateway.MaxBody)
	for _, c := range []struct {
		name, input string
		want        string
	}{
		{"empty", "", "0 empty_file"},
		{"of empty lines", "\n \r\n", "0 empty_file"},
		{"not JSON", lineOf(0) + "\n{\n", "2 invalid_json_line"},
		{"nested deeply", with(`"n":1`, `"n":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)), "1 invalid_json_line"},
		{"endless nesting", with(`"n":1`, `"n":`+strings.Repeat("[", gateway.MaxBody)), "1 invalid_json_line"},
		{"an array", "[]", "1 invalid_json_line"},
		{"invalid UTF-8", with("call-1", "\xff"), "1 invalid_json_line"},
		{"no id", with("custom_id", "id"), "1 missing_required_parameter"},
		{"an empty id", with("call-1", ""), "1 invalid_custom_id"},
		{"a number for an id", with(`"call-1"`, "1"), "1 invalid_custom_id"},
		{"a long id", with("call-1", strings.Repeat("é", 513)), "1 invalid_custom_id"},
		{"two ids in a line", with(`{`, `{"custom_id":"call-7",`), "1 invalid_json_line"},
		{"two ids, one escaped", with(`{`, `{"custom\u005fid":"call-7",`), "1 invalid_json_line"},
		{"two bodies", with(`{`, `{"body":{},`), "1 invalid_json_line"},
		{"an empty body twice", with(`{`, `{"body":null,`), "1 invalid_json_line"},
		{"two urls", with(`{`, `{"url":"/v1/chat/completions",`), "1 invalid_json_line"},
		{"two methods", with(`{`, `{"method":"POST",`), "1 invalid_json_line"},
		{"a duplicate id", lineOf(1) + "\n\n" + lineOf(1), "3 duplicate_custom_id"},
		{"another method", with("POST", "GET"), "1 invalid_method"},
		{"another url", with(endpoint, "/v1/embeddings"), "1 invalid_url"},
		{"no body", with("body", "bodies"), "1 missing_required_parameter"},
		{"a stream", with(`"n":1`, `"stream":true`), "1 stream_not_allowed"},
		{"no model", with("model", "models"), "1 missing_required_parameter"},
		{"two models", lineOf(0) + "\n" + with(`"m"`, `"other"`), "2 model_mismatch"},
		{"a long body", with(`"n":1`, `"n":"`+long+`"`) + "\n" + lineOf(2), "1 line_too_long"},
		{"an endless line", lineOf(0) + "\n" + long + long + "\n" + "{", "2 line_too_long, 3 invalid_json_line"},
		{"many errors", strings.Repeat("x\n", 1000), strings.TrimSuffix(manyFlaws(), ", ")},
	} {
		b := w.reaches(w.create("acme", c.input), batch.Failed)
		var reported []string
		for _, e := range b.Errors {
			reported = append(reported, fmt.Sprintf("%d %s", e.Line, e.Code))
		}
		if got := strings.Join(reported, ", "); got != c.want || b.Total != 0 || b.EndedAt.IsZero() {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if all, _ := w.calls(); all > 0 {
		t.Errorf("%d calls were made", all)
	}
	// These inputs resemble invalid ones but are valid.
	for name, input := range map[string]string{
		"a byte order mark": "\ufeff" + lineOf(1), "other ends of lines": lineOf(1) + "\r\n" + lineOf(2) + "\r\n",
		"stream is false": with(`"n":1`, `"stream":false`),
	} {
		if b := w.reaches(w.create("acme", input), batch.Completed); b.Failed > 0 {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

func manyFlaws() string {
	var text strings.Builder
	for n := range batch.MaxErrors {
		fmt.Fprintf(&text, "%d invalid_json_line, ", n+1)
	}
	return text.String()
}

func TestInvalidBatchesAreRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.upload("acme", strings.NewReader(lines(1)))
	request := batch.Request{Account: "acme", Endpoint: endpoint, Input: f.ID}
	foreign, unknown, large := request, request, request
	foreign.Account, unknown.Input = "other", "file_0"
	for name, r := range map[string]batch.Request{"another account's file": foreign, "an unknown file": unknown} {
		if _, err := w.service.Create(t.Context(), r); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wide := map[string]string{}
	for n := range 16 {
		wide[fmt.Sprint(n)] = strings.Repeat("é", 512)
	}
	for name, metadata := range map[string]map[string]string{
		"a long value": {"a": strings.Repeat("x", 513)}, "many bytes": wide,
	} {
		large.Metadata = metadata
		if _, err := w.service.Create(t.Context(), large); !fault.Is(err, fault.Invalid) {
			t.Errorf("metadata with %s: %v", name, err)
		}
	}
	for range batch.MaxOpen {
		_, err := w.service.Create(t.Context(), request)
		w.must(err)
	}
	if _, err := w.service.Create(t.Context(), request); !fault.Is(err, fault.Limited) {
		t.Errorf("one batch too many: %v", err)
	}
}

// When a batch is cancelled, its calls in flight finish.
func TestCancelledBatchHasAllResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := w.hold("acme")
	w.run()
	b := w.create("acme", lines(50))
	await.Until(w, "calls to start", func() bool { all, _ := w.calls(); return all == 3 })
	b, err := w.service.Cancel(t.Context(), "acme", b.ID)
	w.must(err)
	if b.Status != batch.Cancelling || b.CancellingAt.IsZero() {
		t.Errorf("got %+v", b)
	}
	close(release)
	b = w.reaches(b, batch.Cancelled)
	answers, failures := w.results("acme", b.Output), w.results("acme", b.Failures)
	if len(answers) < 3 || b.Answered != len(answers) || len(answers)+len(failures) != 50 || b.Failed != len(failures) {
		t.Errorf("%d results and %d failures of %+v", len(answers), len(failures), b)
	}
	for id, failure := range failures {
		if failure.Error == nil || failure.Error.Code != "batch_cancelled" || failure.Response != nil {
			t.Errorf("%s: %+v", id, failure)
		}
	}
	if got := w.billed("acme"); got != int64(len(answers)) {
		t.Errorf("%d calls were billed, %d answered", got, len(answers))
	}
	again, err := w.service.Cancel(t.Context(), "acme", b.ID)
	if err != nil || again.Status != batch.Cancelled {
		t.Errorf("again: %+v, %v", again, err)
	}
	if _, err := w.service.Cancel(t.Context(), "other", b.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("another account's batch: %v", err)
	}
}

// When the second batch expires, no runner is working on it.
func TestExpiredBatchKeepsItsResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.answerSlowly()
	stop := w.run()
	running := w.create("acme", lines(5000))
	await.Until(w, "calls", func() bool { all, _ := w.calls(); return all > 4 })
	w.ahead.Store(int64(batch.Window + time.Minute))
	w.runner.Wake()
	running = w.reaches(running, batch.Expired)
	failures := w.results("acme", running.Failures)
	if running.Answered+running.Failed != 5000 || running.Failed == 0 || len(failures) != running.Failed ||
		running.FinalizingAt.IsZero() {
		t.Errorf("got %+v", running)
	}
	for id, failure := range failures {
		if failure.Error == nil || failure.Error.Code != "batch_expired" {
			t.Errorf("%s: %+v", id, failure)
		}
	}
	stop()
	w.runner = w.newRunner()
	w.set(func(context.Context, string) gateway.BatchResponse {
		return gateway.BatchResponse{Status: 429, RetryAfter: time.Hour}
	})
	late := w.create("acme", lines(3))
	w.ahead.Add(int64(batch.Window + time.Minute))
	w.run()
	if late = w.reaches(late, batch.Expired); late.Failed != 3 || late.Output != "" {
		t.Errorf("got %+v", late)
	}
}

func TestRevokedKeyEndsBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.answerSlowly()
	w.run()
	b := w.create("acme", lines(5000))
	await.Until(w, "calls", func() bool { all, _ := w.calls(); return all > 4 })
	w.revoked.Store(true)
	await.Until(w, "the end of the batch", func() bool {
		w.runner.Wake() // wake it, because it checks the key only every few seconds
		now, err := w.service.Get(t.Context(), "acme", b.ID)
		return err == nil && now.Status != batch.InProgress
	})
	b = w.reaches(b, batch.Cancelled)
	if len(b.Errors) != 1 || b.Errors[0].Code != "key_revoked" || b.Answered+b.Failed != 5000 || b.Failed == 0 {
		t.Errorf("got %+v", b)
	}
}

// No more calls are made, and no result is lost.
func TestFullDiskPausesBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.full.Store(true)
	w.set(func(_ context.Context, body string) gateway.BatchResponse {
		return answered("acme", "key_acme", strings.Replace(body, "{", `{"text":"`+strings.Repeat("x", 200_000)+`",`, 1))
	})
	w.run()
	b := w.create("acme", lines(100))
	await.Until(w, "a rejection", func() bool { return strings.Contains(w.log.String(), "disk is full") })
	if all, _ := w.calls(); all > 20 {
		t.Errorf("%d calls were made", all)
	}
	w.full.Store(false)
	if b = w.reaches(b, batch.Completed); b.Answered != 100 || w.billed("acme") != 100 {
		t.Errorf("got %+v", b)
	}
}

// largeInput generates an input file of calls with texts of a given length.
type largeInput struct {
	calls, text int

	n    int
	rest string
}

func (in *largeInput) Read(p []byte) (int, error) {
	if in.rest == "" {
		if in.n == in.calls {
			return 0, io.EOF
		}
		in.rest = strings.Replace(lineOf(in.n), `"n"`, `"text":"`+strings.Repeat("x", in.text)+`","n"`, 1) + "\n"
		in.n++
	}
	n := copy(p, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

// With the race detector, the test is many times slower, so it makes only a tenth of the calls.
func TestLargeBatchUsesLittleMemory(t *testing.T) {
	input, atMost := &largeInput{calls: batch.MaxLines, text: 2000}, int64(64<<20)
	if racetest.Enabled {
		input, atMost = &largeInput{calls: batch.MaxLines / 10, text: 8000}, 24<<20
	}
	w := newWorld(t)
	w.set(func(_ context.Context, body string) gateway.BatchResponse {
		return gateway.BatchResponse{Status: 200, Body: []byte(body)}
	})
	b, err := w.service.Create(t.Context(), batch.Request{
		Account: "acme", Key: "key_acme", Endpoint: endpoint, Input: w.upload("acme", input).ID,
	})
	w.must(err)
	w.mu.Lock()
	w.made = nil // the recorded calls would use most of the memory
	w.mu.Unlock()
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	w.run()
	most := uint64(0)
	await.Until(w, "the batch to end", func() bool {
		runtime.ReadMemStats(&now)
		most = max(most, now.HeapAlloc)
		time.Sleep(50 * time.Millisecond)
		current, err := w.service.Get(t.Context(), "acme", b.ID)
		w.must(err)
		return current.Status.Ended()
	})
	b = w.reaches(b, batch.Completed)
	f, err := w.files.Get(t.Context(), "acme", b.Output)
	w.must(err)
	if b.Answered != input.calls || f.Size < int64(input.calls*input.text) {
		t.Errorf("got %+v, %d bytes", b, f.Size)
	}
	if taken := int64(most) - int64(before.HeapAlloc); taken > atMost {
		t.Errorf("used %d bytes of memory", taken)
	} else {
		t.Logf("%d bytes of results, %d bytes of memory", f.Size, taken)
	}
}

func TestStalledBatchesLeaveSlotsToOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(func(_ context.Context, body string) gateway.BatchResponse {
		if strings.Contains(body, "stuck") {
			return gateway.BatchResponse{Status: 429, Body: []byte(`{}`), RetryAfter: time.Hour}
		}
		return answered("other", "key_other", body)
	})
	w.run()
	for range 20 {
		w.create("acme", strings.Replace(lines(1), `"n":0`, `"stuck":0`, 1))
	}
	await.Until(w, "all slots to be taken", func() bool { all, _ := w.calls(); return all >= 16 })
	b := w.reaches(w.create("other", lines(3)), batch.Completed)
	if b.Answered != 3 {
		t.Errorf("got %+v", b)
	}
}

// Calls of an ended batch are cancelled if other accounts are waiting. They are not retried, so they are billed.
func TestCallsOfEndedBatchAreCancelled(t *testing.T) {
	t.Parallel()
	for _, stops := range []bool{false, true} {
		w := newWorld(t)
		w.set(func(ctx context.Context, body string) gateway.BatchResponse {
			<-ctx.Done()
			cut := gateway.BatchResponse{Cut: true}
			if errors.Is(context.Cause(ctx), gateway.ErrGivenUp) {
				cut.Used = answered("acme", "key_acme", body).Used
			}
			return cut
		})
		stop := w.run()
		b := w.create("acme", lines(10))
		await.Until(w, "calls to start", func() bool { all, _ := w.calls(); return all == 3 })
		w.create("other", lines(10))
		await.Until(w, "another account's batch to run", func() bool { all, _ := w.calls(); return all == 4 })
		_, err := w.service.Cancel(t.Context(), "acme", b.ID)
		w.must(err)
		if stops {
			stop()
			w.runner = w.newRunner()
			w.run()
		}
		b = w.reaches(b, batch.Cancelled)
		if failures := w.results("acme", b.Failures); b.Failed != 10 || len(failures) != 10 {
			t.Errorf("%d failures of %+v", len(failures), b)
		}
		if got := w.billed("acme"); got != 3 {
			t.Errorf("%d calls were billed", got)
		}
	}
}

// callMiB is the memory limit for long lines, in MiB. It is a sixteenth of the default, which makes the tests cheap.
const callMiB = 4

// longLine returns a line whose body has the given size, in sixteenths of a MiB, and ends in the number n.
func longLine(n, sixteenths int) string {
	body := fmt.Sprintf(`{"model":"m","text":"%s","n":%d}`, strings.Repeat("x", sixteenths<<16), 10+n)
	return fmt.Sprintf(`{"custom_id": "one", "method": "POST", "url": %q, "body": %s}`, endpoint, body)
}

// While a call waits, its line is not in memory.
func TestLongLinesUseLimitedMemory(t *testing.T) {
	const accounts, length, fit = 6, 19, 3
	w := newWorld(t)
	w.runner.WithMemory(callMiB<<20, callMiB<<19)
	w.made = nil // the recorded calls would use most of the memory
	var mu sync.Mutex
	refused, within, inAll := map[string]bool{}, 0, 0
	full := make(chan struct{})
	w.set(func(_ context.Context, body string) gateway.BatchResponse {
		account := body[len(body)-3:]
		mu.Lock()
		if !refused[account] {
			refused[strings.Clone(account)] = true
			mu.Unlock()
			return gateway.BatchResponse{Status: 429, Body: []byte(`{}`), RetryAfter: time.Second}
		}
		if within++; within > fit {
			t.Errorf("%d lines are in memory", within)
		}
		now := full
		if inAll++; inAll%fit == 0 {
			full = make(chan struct{})
			close(now)
		}
		mu.Unlock()
		<-now
		mu.Lock()
		within--
		mu.Unlock()
		return gateway.BatchResponse{Status: 200, Body: []byte(`{}`)}
	})
	var all []batch.Batch
	for n := range accounts {
		input := "\xef\xbb\xbf" + longLine(n, length) + strings.Repeat(" ", 100_000) + "\n"
		all = append(all, w.create(fmt.Sprintf("account-%d", n), input))
	}
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	w.run()
	most := uint64(0)
	for _, b := range all {
		await.Until(w, "the batch to end", func() bool {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
			current, err := w.service.Get(t.Context(), b.Account, b.ID)
			w.must(err)
			return current.Status == batch.Completed
		})
	}
	// The test also copies each line, and some copies might not have been freed yet.
	if taken := int64(most) - int64(before.HeapAlloc); taken > 4*fit*length<<16 {
		t.Errorf("the lines used %d bytes", taken)
	} else {
		t.Logf("the lines used %d bytes", taken)
	}
}

func TestSlowLongLinesDoNotBlockValidation(t *testing.T) {
	w := newWorld(t)
	w.runner.WithMemory(callMiB<<20, callMiB<<19)
	w.made = nil
	under := make(chan bool, 16)
	w.set(func(ctx context.Context, _ string) gateway.BatchResponse {
		under <- true
		<-ctx.Done()
		return gateway.BatchResponse{Cut: true}
	})
	w.run()
	for n := range 2 {
		w.create(fmt.Sprintf("account-%d", n), longLine(n, 30))
		await.Receive(t, "under", under)
	}
	b := w.reaches(w.create("acme", longLine(2, 30)), batch.InProgress)
	_, err := w.service.Cancel(t.Context(), "acme", b.ID)
	w.must(err)
	w.reaches(b, batch.Cancelled)
}
