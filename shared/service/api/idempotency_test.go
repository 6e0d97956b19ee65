package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/idempotency"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
)

func (w *world) sentWith(idempotencyKey, path, key string, parts ...part) answer {
	w.t.Helper()
	body, contentType := multiform(parts...)
	return w.request(http.MethodPost, path, key, strings.NewReader(body), "Content-Type: "+contentType,
		"Idempotency-Key: "+idempotencyKey)
}

func (w *world) replays(a, first answer) {
	w.t.Helper()
	if a.status != first.status || a.body != first.body || a.header.Get("Idempotent-Replayed") != "true" {
		w.t.Fatalf("sent again: %d %s (replayed %q)\nat first: %d %s", a.status, a.body, a.header.Get("Idempotent-Replayed"),
			first.status, first.body)
	}
}

func (w *world) secondKey() string {
	w.t.Helper()
	const secret = "ck_studio_second"
	key, err := credential.NewKey(secret, "studio", credential.DefaultTier, "", w.now())
	if err == nil {
		err = w.keys.CreateKey(w.t.Context(), audit.Operator(key.CreatedAt), key)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

func (w *world) openJobs(account string) int {
	w.t.Helper()
	backlog, err := w.records.Backlog(w.t.Context(), job.VideoLane, account)
	if err != nil {
		w.t.Fatal(err)
	}
	return backlog.AccountJobs
}

// It does not matter how the form is encoded. A retry's files are deleted.
func TestRetriedJobRequestGetsTheSameJob(t *testing.T) {
	w := newWorld(t, setup{})
	clip, look := clip(t), picture(t)
	key, path := studio, "/v1/jobs/gen-2.5"
	first := w.sentWith("a", path, key, upload("data", clip), text("prompt", "oil"), upload("reference_image", look))
	id := w.accepted(first)
	if first.header.Get("Idempotent-Replayed") != "" {
		t.Error("the first response is marked as replayed")
	}
	kept := len(w.files())
	for _, c := range []struct {
		says, path string
		parts      []part
	}{
		{"unchanged", path, []part{upload("data", clip), text("prompt", "oil"), upload("reference_image", look)}},
		{"with parts in another order", path, []part{upload("reference_image", look), text("prompt", "oil"),
			upload("data", clip)}},
		{"a field by its other name", path, []part{upload("data", clip), text("prompt", "oil"),
			upload("reference_image.0", look)}},
		{"defaults spelled out", path, []part{upload("data", clip), text("prompt", "oil"), upload("reference_image", look),
			text("enhance_prompt", "yes")}},
		{"a file by its reference", path, []part{upload("data", w.keep(key, clip).ID), text("prompt", "oil"),
			upload("reference_image", look)}},
		{"by an alias of the model", "/v1/jobs/gen-latest", []part{upload("data", clip), text("prompt", "oil"),
			upload("reference_image", look)}},
	} {
		t.Run(c.says, func(t *testing.T) { w.replays(w.sentWith("a", c.path, key, c.parts...), first) })
	}
	if got := len(w.files()); got != kept+1 { // plus the stored file that it refers to
		t.Errorf("%d files are kept, want %d", got, kept+1)
	}
	if n := w.openJobs("studio"); n != 1 {
		t.Errorf("there are %d jobs, want 1", n)
	}
	t.Run("by another key of the account", func(t *testing.T) {
		w.replays(w.sentWith("a", path, w.secondKey(), upload("data", clip), text("prompt", "oil"),
			upload("reference_image", look)), first)
	})
	t.Run("after the referenced file is gone", func(t *testing.T) {
		file := w.keep(key, clip).ID
		parts := []part{upload("data", file), text("prompt", "pencil")}
		first := w.sentWith("b", path, key, parts...)
		if a := w.request(http.MethodDelete, "/v1/files/"+file, key, nil); a.status != http.StatusNoContent {
			t.Fatalf("delete: %d %s", a.status, a.body)
		}
		w.replays(w.sentWith("b", path, key, parts...), first)
		for says, a := range map[string]answer{
			"another file": w.sentWith("b", path, key, upload("data", file+"x"), text("prompt", "pencil")),
			"another key":  w.sentWith("c", path, key, parts...),
		} {
			if a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, "There is no file") {
				t.Errorf("%s: %d %s", says, a.status, a.body)
			}
		}
		other := w.sentWith("b", path, key, upload("data", file), text("prompt", "oil"))
		if other.status != http.StatusConflict {
			t.Errorf("another prompt: %d %s", other.status, other.body)
		}
	})
	t.Run("another account's request is separate", func(t *testing.T) {
		other := w.accepted(w.sentWith("a", path, rival, upload("data", clip), text("prompt", "oil"),
			upload("reference_image", look)))
		if other == id {
			t.Error("two accounts share a job")
		}
	})
	t.Run("after a day the key can be reused", func(t *testing.T) {
		w.later.Add(int64(idempotency.Age))
		again := w.accepted(w.sentWith("a", path, key, upload("data", clip), text("prompt", "oil"),
			upload("reference_image", look)))
		if again == id {
			t.Error("the key is still known")
		}
	})
}

func TestReusedIdempotencyKeyIsRejected(t *testing.T) {
	w := newWorld(t, setup{})
	clip, key := clip(t), studio
	w.accepted(w.sentWith("a", "/v1/jobs/gen-2.5", key, upload("data", clip), text("prompt", "oil")))
	w.stored(w.sentWith("f", "/v1/files", key, upload("file", "bytes")))
	w.newTokenWith("t", key, `{"expiresIn": 60}`)
	kept := len(w.files())
	for _, c := range []struct {
		says, idempotencyKey, path string
		parts                      []part
	}{
		{"another prompt", "a", "/v1/jobs/gen-2.5", []part{upload("data", clip), text("prompt", "ink")}},
		{"another clip", "a", "/v1/jobs/gen-2.5", []part{upload("data", clip+"\x00"), text("prompt", "oil")}},
		{"a seed", "a", "/v1/jobs/gen-2.5", []part{upload("data", clip), text("prompt", "oil"), text("seed", "0")}},
		{"a webhook", "a", "/v1/jobs/gen-2.5", []part{upload("data", clip), text("prompt", "oil"),
			text("webhook_url", "https://example.com/")}},
		{"another model", "a", "/v1/jobs/gen-2.1", []part{upload("data", clip), text("prompt", "oil")}},
		{"another route", "a", "/v1/files", []part{upload("file", clip)}},
		{"other bytes", "f", "/v1/files", []part{upload("file", "other bytes")}},
		{"another lifetime", "f", "/v1/files", []part{upload("file", "bytes"), text("ttl_seconds", "61")}},
	} {
		t.Run(c.says, func(t *testing.T) {
			a := w.sentWith(c.idempotencyKey, c.path, key, c.parts...)
			if a.status != http.StatusConflict || a.detail() != "The Idempotency-Key was already used for another request." ||
				a.header.Get("Retry-After") != "" {
				t.Errorf("%d %s, Retry-After %q", a.status, a.body, a.header.Get("Retry-After"))
			}
		})
	}
	if a := w.newTokenWith("t", key, `{"expiresIn": 61}`); a.status != http.StatusConflict {
		t.Errorf("another token: %d %s", a.status, a.body)
	}
	if got := len(w.files()); got != kept {
		t.Errorf("%d files are kept, want %d", got, kept)
	}
}

func TestConcurrentRequestsWithOneKeyCreateOneJob(t *testing.T) {
	w := newWorld(t, setup{})
	clip, key := clip(t), studio
	answers := make([]answer, 20)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			answers[i] = w.sentWith("a", "/v1/jobs/gen-2.5", key, upload("data", clip), text("prompt", "oil"))
		})
	}
	all.Wait()
	replayed := 0
	for _, a := range answers {
		if a.status != http.StatusOK || a.body != answers[0].body {
			t.Fatalf("%d %s, want %s", a.status, a.body, answers[0].body)
		}
		if a.header.Get("Idempotent-Replayed") == "true" {
			replayed++
		}
	}
	if n := w.openJobs("studio"); n != 1 || replayed != len(answers)-1 {
		t.Errorf("%d jobs; %d of %d responses are replayed", n, replayed, len(answers))
	}
	if files := w.files(); len(files) != 1 {
		t.Errorf("the folder contains %v, want the input of one job", files)
	}
}

func TestRejectedRequestFreesItsKey(t *testing.T) {
	w := newWorld(t, setup{pending: 1})
	clip, key := clip(t), studio
	if a := w.sentWith("a", "/v1/jobs/gen-2.5", key,
		upload("data", "no video")); a.status != http.StatusUnprocessableEntity {
		t.Fatalf("%d %s", a.status, a.body)
	}
	other := w.accepted(w.sentWith("a", "/v1/jobs/gen-2.5", key, upload("data", clip)))
	if a := w.sentWith("b", "/v1/jobs/gen-2.5", key, upload("data", clip)); a.status != http.StatusTooManyRequests {
		t.Fatalf("beyond the account's limit: %d %s", a.status, a.body)
	}
	if a := w.request(http.MethodDelete, "/v1/jobs/"+other, key, nil); a.status != http.StatusOK {
		t.Fatalf("cancel: %d %s", a.status, a.body)
	}
	second := w.sentWith("b", "/v1/jobs/gen-2.5", key, upload("data", clip))
	w.accepted(second)
	w.replays(w.sentWith("b", "/v1/jobs/gen-2.5", key, upload("data", clip)), second)
}

// An account's client tokens share idempotency keys with each other, but not with its permanent keys. A token's scope
// is checked before a response is replayed.
func TestClientTokensHaveSeparateIdempotencyKeys(t *testing.T) {
	w := newWorld(t, setup{})
	parts := func(prompt string) []part { return []part{upload("data", clip(t)), text("prompt", prompt)} }
	send := func(key, prompt string) answer { return w.sentWith("a", "/v1/jobs/gen-2.5", key, parts(prompt)...) }
	ours := w.accepted(send(studio, "oil"))
	first := send(w.mint(studio, credential.Scope{}), "oil")
	if theirs := w.accepted(first); theirs == ours || first.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("a client token received %s, which a permanent key made: %s", ours, theirs)
	}
	// A new token works too, because the first one may have expired.
	w.replays(send(w.mint(studio, credential.Scope{Models: []string{"gen-latest"}}), "oil"), first)
	if a := send(w.mint(studio, credential.Scope{}), "ink"); a.status != http.StatusConflict {
		t.Errorf("another request with the key: %d %s", a.status, a.body)
	}
	if a := send(w.mint(studio, credential.Scope{Models: []string{"gen-2.1"}}), "oil"); a.status != http.StatusForbidden ||
		strings.Contains(a.body, "job_") {
		t.Errorf("beyond the token's scope: %d %s", a.status, a.body)
	}
}

func TestNewKeyAtTheLimitIsRejectedEarly(t *testing.T) {
	w := newWorld(t, setup{pending: 1})
	w.accepted(w.sentWith("a", "/v1/jobs/gen-2.5", studio, upload("data", clip(t))))
	a, err := w.raw(func(conn *net.TCPConn) {
		io.WriteString(conn, head("gen-2.5", "Content-Length: 1000000", "Expect: 100-continue", "Idempotency-Key: b"))
	})
	if err != nil || a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %s, %v", a.status, a.body, err)
	}
}

// The server crashes just before or just after the request creates its job.
func TestRetryAfterCrashGetsOneJob(t *testing.T) {
	for _, c := range []struct {
		says string
		made bool
	}{{"before its job was accepted", false}, {"after its job was accepted", true}} {
		t.Run(c.says, func(t *testing.T) {
			w := newWorld(t, setup{})
			clip, key := clip(t), studio
			first := w.accepted(w.sentWith("a", "/v1/jobs/gen-2.5", key, upload("data", clip)))
			claims := w.claims
			known, err := claims.Claim(t.Context(), idempotency.Claim{Account: "studio", Key: "key/a", Fingerprint: "?",
				Resource: "?"}, "", w.now())
			if err != nil {
				t.Fatal(err)
			}
			claimed := first
			if !c.made {
				claimed = "job_" + strings.Repeat("0", 26)
			}
			_, err = claims.Claim(t.Context(), idempotency.Claim{Account: "studio", Key: "key/b", Fingerprint: known.Fingerprint,
				Resource: claimed}, "", w.now())
			if err != nil {
				t.Fatal(err)
			}
			w.later.Add(int64(idempotency.Abandoned))
			a := w.sentWith("b", "/v1/jobs/gen-2.5", key, upload("data", clip))
			if again := w.accepted(a); (again == first) != c.made || (a.header.Get("Idempotent-Replayed") == "true") != c.made {
				t.Errorf("got job %s, want %s; replayed %q", again, first, a.header.Get("Idempotent-Replayed"))
			}
		})
	}
}

// A request waits for an earlier one with the same key, but only for a limited time.
func TestConcurrentRetryWaits(t *testing.T) {
	w := newWorld(t, setup{})
	clip, key := clip(t), studio
	w.accepted(w.sentWith("a", "/v1/jobs/gen-2.5", key, upload("data", clip)))
	claims := w.claims
	known, err := claims.Claim(t.Context(), idempotency.Claim{Account: "studio", Key: "key/a", Fingerprint: "?",
		Resource: "?"}, "", w.now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = claims.Claim(t.Context(), idempotency.Claim{Account: "studio", Key: "key/b",
		Fingerprint: known.Fingerprint, Resource: "job_?"}, "", w.now()); err != nil {
		t.Fatal(err)
	}
	a := w.sentWith("b", "/v1/jobs/gen-2.5", key, upload("data", clip))
	if a.status != http.StatusConflict || a.header.Get("Retry-After") != "5" {
		t.Errorf("%d %s, Retry-After %q", a.status, a.body, a.header.Get("Retry-After"))
	}
}

func TestRetriedImageRequestGetsTheImage(t *testing.T) {
	w := newWorld(t, setup{})
	key, begun, finish := studio, make(chan struct{}), make(chan struct{})
	w.work(script(func(ctx context.Context, spec engine.Spec) error {
		close(begun)
		select {
		case <-finish:
		case <-ctx.Done():
			return ctx.Err()
		}
		return os.WriteFile(spec.Output, []byte("a picture"), 0o600)
	}), blind{})
	parts := []part{upload("data", picture(t)), text("prompt", "ink")}
	ctx, leave := context.WithCancel(t.Context())
	body, contentType := multiform(parts...)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/generate/gen-image-2",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"X-Api-Key": {key}, "Content-Type": {contentType}, "Idempotency-Key": {"a"}}
	go func() {
		<-begun
		leave()
	}()
	if _, err := http.DefaultTransport.RoundTrip(request); err == nil {
		t.Fatal("the caller is still waiting")
	}
	time.AfterFunc(100*time.Millisecond, func() { close(finish) })
	first := w.sentWith("a", "/v1/generate/gen-image-2", key, parts...)
	if first.status != http.StatusOK || first.body != "a picture" || first.header.Get("Idempotent-Replayed") != "true" {
		t.Fatalf("%d %s", first.status, first.body)
	}
	again := w.sentWith("a", "/v1/generate/gen-image-2", key, parts...)
	w.replays(again, first)
	if again.header.Get("X-Job-Id") != first.header.Get("X-Job-Id") {
		t.Error("the picture is another job's")
	}
}

func TestRetriedUploadGetsTheSameFile(t *testing.T) {
	w := newWorld(t, setup{})
	key := studio
	parts := []part{{"file", "look.png", picture(t)}, text("ttl_seconds", "3600")}
	first := w.sentWith("a", "/v1/files", key, parts...)
	stored := w.stored(first)
	w.replays(w.sentWith("a", "/v1/files", key, parts...), first)
	if n := len(w.list(key, "").Files); n != 1 || len(w.files()) != 1 {
		t.Errorf("%d files are listed, and the folder contains %v", n, w.files())
	}
	if a := w.request(http.MethodDelete, "/v1/files/"+stored.ID, key, nil); a.status != http.StatusNoContent {
		t.Fatalf("delete: %d", a.status)
	}
	w.replays(w.sentWith("a", "/v1/files", key, parts...), first)
	if n := len(w.list(key, "").Files); n != 0 {
		t.Error("a deleted file was returned")
	}

	announce := func() answer {
		return w.request(http.MethodPost, "/v1/files", key,
			strings.NewReader(`{"filename": "a.bin", "mime_type": "application/zip", "size_bytes": 5, "md5": `+
				`"5d41402abc4b2a76b9719d911017c592"}`),
			"Content-Type: application/json", "Idempotency-Key: b")
	}
	var promised, again struct {
		ID     string
		Upload struct{ URL, Method string }
	}
	for _, one := range []any{&promised, &again} {
		a := announce()
		if err := json.Unmarshal([]byte(a.body), one); err != nil || a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if promised.ID != again.ID || again.Upload.Method != http.MethodPut {
		t.Errorf("announced as %+v, then %+v", promised, again)
	}
	put, err := http.NewRequestWithContext(t.Context(), http.MethodPut, again.Upload.URL, strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(put)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode >= 300 {
		t.Fatalf("the bytes: %s", response.Status)
	}
	late := announce()
	if err := json.Unmarshal([]byte(late.body), &again); err != nil || late.status != http.StatusOK ||
		again.ID != promised.ID || late.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("announced once its bytes were there: %d %s", late.status, late.body)
	}
	if a := w.sentWith("b", "/v1/files", key, part{"file", "a.bin", "hello"},
		text("ttl_seconds", "86400")); a.status != http.StatusConflict {
		t.Errorf("sent under the key of an announcement: %d %s", a.status, a.body)
	}
	w.later.Add(int64(file.SignedTime))
	if a := announce(); a.status != http.StatusConflict || !strings.Contains(a.body, promised.ID) {
		t.Errorf("announced again after its expiry: %d %s", a.status, a.body)
	}
}

func (w *world) newTokenWith(idempotencyKey, key, body string) answer {
	w.t.Helper()
	return w.request(http.MethodPost, "/v1/client/tokens", key, strings.NewReader(body),
		"Content-Type: application/json", "Idempotency-Key: "+idempotencyKey)
}

// Another API key does not get the token.
func TestRetriedTokenRequestGetsTheSameToken(t *testing.T) {
	w := newWorld(t, setup{})
	key := studio
	first := w.newTokenWith("a", key, `{"expiresIn": 300}`)
	if first.status != http.StatusOK || !strings.Contains(first.body, `"ek_`) {
		t.Fatalf("%d %s", first.status, first.body)
	}
	w.replays(w.newTokenWith("a", key, `{"expiresIn": 300}`), first)
	if a := w.newTokenWith("a", w.secondKey(), `{"expiresIn": 300}`); a.status != http.StatusConflict ||
		strings.Contains(a.body, "ek_") || a.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("with another API key: %d %s", a.status, a.body)
	}
	var token struct{ APIKey string }
	if err := json.Unmarshal([]byte(first.body), &token); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{w.database, w.database + "-wal"} {
		bytes, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(bytes), token.APIKey) {
			t.Errorf("%s contains the token's secret", path)
		}
	}
}

func TestInvalidIdempotencyKeyIsRejected(t *testing.T) {
	w := newWorld(t, setup{})
	key := studio
	for _, value := range []string{"", strings.Repeat("k", 256), "é", "a\tb"} {
		a := w.newTokenWith(value, key, "{}")
		if a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, `"loc":["header","Idempotency-Key"]`) {
			t.Errorf("%q: %d %s", value, a.status, a.body)
		}
	}
	if a := w.newTokenWith(strings.Repeat("~", 255), key, "{}"); a.status != http.StatusOK {
		t.Errorf("the longest key: %d %s", a.status, a.body)
	}
}
