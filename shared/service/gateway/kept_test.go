package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/response"
	"cutroom/shared/testkit/sqlitetest"
)

func responses(t *testing.T) response.Store {
	t.Helper()
	db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: time.Now})
	return db.Responses()
}

type countingStore struct {
	response.Store
	finds atomic.Int32
}

func (c *countingStore) Find(ctx context.Context, account, id string, now time.Time) ([]byte, error) {
	c.finds.Add(1)
	return c.Store.Find(ctx, account, id, now)
}

func TestReferencesMakeFewQueries(t *testing.T) {
	store := &countingStore{Store: responses(t)}
	w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, always(200, whole))}, rows: oneRow, responses: store})
	reference := `{"type":"item_reference","id":"` + strings.Repeat("E4RZ3XU7HLAVKFQYMB26TWNDCO_", 1000) + `0"}`
	a := w.post("/v1/responses", `{"model":"small","input":[`+reference+`,`+reference+`]}`)
	if n := store.finds.Load(); a.status != 400 || n != 1 {
		t.Errorf("%d queries: %d %.200s", n, a.status, a.body)
	}
}

func TestReferencesToALargeItemStayWithinTheBodyLimit(t *testing.T) {
	u := newUpstream(t, always(200, whole))
	w := newWorld(t, setup{upstreams: []*modelServer{u}, rows: oneRow, responses: responses(t)})
	large := `{"type":"message","role":"user","id":"m0","content":"` + strings.Repeat("a", 1000<<10) + `"}`
	id := gjson.Get(w.post("/v1/responses", `{"model":"small","input":[`+large+`]}`).body, "id").Str
	references := strings.Repeat(`{"type":"item_reference","id":"m0"},`, 2000)
	body := `{"model":"small","previous_response_id":"` + id + `","input":[` + strings.TrimSuffix(references, ",") + `]}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a := w.post("/v1/responses", body)
	runtime.ReadMemStats(&after)
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; a.status != 413 || used > 100 {
		t.Errorf("%d MiB allocated: %d %.200s", used, a.status, a.body)
	}
	body = `{"model":"small","input":[{"role":"user",` + strings.Repeat(" ", 1000<<10) + `"content":"x"}]}`
	id = gjson.Get(w.post("/v1/responses", body).body, "id").Str
	w.post("/v1/responses", `{"model":"small","input":"y","previous_response_id":"`+id+`"}`)
	if seen := u.seen(); len(seen[len(seen)-1].body) > 10_000 {
		t.Errorf("white space of %d bytes is kept", len(seen[len(seen)-1].body))
	}
}

func (w *world) storedResponse(method, id, key string) answer {
	w.t.Helper()
	return w.do(w.request(w.t.Context(), method, "/v1/responses/"+id, key, nil))
}

const nativeResponse = `{"id":"r","object":"response","status":"completed","model":"weights","store":false,` +
	`"output":[{"id":"m","type":"message","role":"assistant","content":[{"type":"output_text","text":"hello there"}]}],` +
	`"usage":{"input_tokens":1,"output_tokens":2}}`

// Clients refer to earlier responses and their items, whether the server supports the dialect or not.
func TestLaterCallsCanReferToKeptResponses(t *testing.T) {
	native := events(`{"type":"response.output_item.added","item":{"id":"m","type":"message"}}`,
		`{"type":"response.completed","response":`+nativeResponse+`}`)
	for _, c := range []struct{ name, rows, whole string }{
		{"translated", oneRow, whole}, {"native", strings.Replace(oneRow, "chat, completions", "responses", 1), nativeResponse},
	} {
		for _, streams := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, streams), func(t *testing.T) {
				u := newUpstream(t, always(200, c.whole))
				w := newWorld(t, setup{upstreams: []*modelServer{u}, rows: c.rows, responses: responses(t)})
				ask := func(body string) gjson.Result {
					t.Helper()
					if streams && c.name == "native" {
						u.now(native)
					} else if streams {
						u.now(events(append([]string{chunk("hello there")}, chatUsed...)...))
					}
					a := w.post("/v1/responses", fmt.Sprintf(`{"model":"small","stream":%v,%s}`, streams, body))
					if a.status != 200 {
						t.Fatalf("%s: %d %s", body, a.status, a.body)
					}
					text := a.body
					if streams {
						text = text[strings.LastIndex(text, "\ndata: ")+7:]
						if added := gjson.Get(text, "response.output.0.id").Str; strings.Count(a.body, added) < 2 {
							t.Errorf("the events name other items than %s: %s", added, a.body)
						}
						return gjson.Get(text, "response")
					}
					return gjson.Parse(text)
				}
				first := ask(`"input":"one two"`)
				id, item := first.Get("id").Str, first.Get("output.0.id").Str
				second := ask(`"input":"three","previous_response_id":"` + id + `"`)
				ask(`"input":[{"role":"user","content":"one two"},{"type":"item_reference","id":"` + item + `"},` +
					`{"type":"item_reference","id":"` + second.Get("output.0.id").Str + `"}]`)
				for _, got := range u.seen()[1:] {
					one, hello := strings.Index(got.body, "one two"), strings.Index(got.body, "hello there")
					if one < 0 || hello < one || strings.Contains(got.body, "item_reference") || strings.Contains(got.body, id) {
						t.Errorf("the server got %s", got.body)
					}
				}
				if first.Get("store").Raw != "true" || second.Get("previous_response_id").Str != id {
					t.Errorf("%s\n%s", first, second)
				}
				if a := w.storedResponse("GET", id, studio); a.status != 200 || gjson.Get(a.body, "id").Str != id ||
					gjson.Get(a.body, "output.0.id").Str != item {
					t.Errorf("%d %s", a.status, a.body)
				}
				for _, method := range []string{"GET", "DELETE"} {
					if a := w.storedResponse(method, id, rival); a.status != 404 {
						t.Errorf("another account: %d %s", a.status, a.body)
					}
				}
				if a := w.storedResponse("DELETE", id, studio); a.status != 200 || !gjson.Get(a.body, "deleted").Bool() {
					t.Errorf("%d %s", a.status, a.body)
				}
				if a := w.storedResponse("GET", id, studio); a.status != 404 {
					t.Errorf("after the deletion: %d %s", a.status, a.body)
				}
				if strings.Contains(w.log.String(), "hello") || strings.Contains(w.log.String(), "one two") {
					t.Errorf("logged: %s", w.log)
				}
			})
		}
	}
}

func TestInputOfKeptResponseIsListed(t *testing.T) {
	w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, always(200, whole))}, responses: responses(t)})
	ask := func(body string) string {
		return gjson.Get(w.post("/v1/responses", `{"model":"small",`+body+`}`).body, "id").Str
	}
	first := ask(`"input":"o\u006ee"`)
	id := ask(`"previous_response_id":"` + first + `","input":[{"id":"mine","type":null,"role":"user","content":[{"type":"input_text","text":"two"}]},` +
		`{"role":"assistant","content":"three"}]`)
	list := func(query, key string) gjson.Result {
		a := w.storedResponse("GET", id+"/input_items"+query, key)
		return gjson.Parse(fmt.Sprintf(`{"status":%d,"page":%s}`, a.status, a.body))
	}
	all := list("?order=asc", studio).Get("page.data.#.id").Array()
	for query, want := range map[string]string{
		"":                                "[three two hello there one] false",
		"?order=asc&limit=2":              "[one hello there] true",
		"?limit=1&after=mine":             "[hello there] true",
		"?order=asc&after=" + all[1].Str:  "[two three] false",
		"?order=desc&after=" + all[1].Str: "[one] false",
	} {
		page := list(query, studio).Get("page")
		var texts []string
		for _, item := range page.Get("data").Array() {
			kind := map[string]string{"user": "input_text", "assistant": "output_text"}[item.Get("role").Str]
			if item.Get("type").Str != "message" || item.Get("content.0.type").Str != kind || item.Get("id").Str == "" {
				t.Errorf("%s: an item is %s", query, item.Raw)
			}
			texts = append(texts, item.Get("content.0.text").Str)
		}
		if got := fmt.Sprint(texts, page.Get("has_more")); got != want || page.Get("last_id").Str != page.Get("data.@reverse.0.id").Str {
			t.Errorf("%s: %s, want %s: %s", query, got, want, page)
		}
	}
	for query, status := range map[string]int64{"?limit=0": 400, "?limit=101": 400, "?order=up": 400, "?after=nothing": 400} {
		if got := list(query, studio); got.Get("status").Int() != status {
			t.Errorf("%s: %s", query, got)
		}
	}
	others := w.token(credential.Scope{Models: []string{"other"}})
	if a, b := list("", rival).Get("status").Int(), list("", others).Get("status").Int(); a != 404 || b != 403 {
		t.Errorf("another account gets %d, another model's token %d", a, b)
	}
}

func TestMissingResponsesAreRejected(t *testing.T) {
	u := newUpstream(t, always(200, whole))
	w := newWorld(t, setup{upstreams: []*modelServer{u}, rows: longRow, responses: responses(t)})
	ask := func(body string) answer { return w.post("/v1/responses", `{"model":"small",`+body+`}`) }
	id := func(a answer) string { return gjson.Get(a.body, "id").Str }
	private := ask(`"input":"x","store":false`)
	large := ask(`"input":"` + strings.Repeat("x", 1<<20) + `"`)
	for _, a := range []answer{private, large} {
		if gjson.Get(a.body, "store").Raw != "false" {
			t.Errorf("%d %.200s", a.status, a.body)
		}
	}
	if a := ask(`"input":[{"role":"user","content":"x"` + strings.Repeat(`},{"role":"user","content":""`, 20_000) + `}]`); gjson.Get(a.body, "store").Raw != "false" {
		t.Errorf("many items are kept: %d %.200s", a.status, a.body)
	}
	old := ask(`"input":"x"`)
	item := gjson.Get(old.body, "output.0.id").Str
	// A reference may repeat an item only as long as the request stays within its limit.
	reference := `{"type":"item_reference","id":"` + item + `"}`
	if a := ask(`"input":[` + reference + strings.Repeat(","+reference, 10_000) + `]`); a.status != 400 ||
		gjson.Get(a.body, "error.code").Str != "array_above_max_length" {
		t.Errorf("%d %.300s", a.status, a.body)
	}
	big := `{"id":"big","role":"user","content":"` + strings.Repeat("y", 1000<<10) + `"}`
	last := id(ask(`"input":[` + big + `]`))
	if a := ask(`"previous_response_id":"` + last + `","input":[{"type":"item_reference","id":"big"}` +
		strings.Repeat(`,{"type":"item_reference","id":"big"}`, 40) + `]`); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %.300s", a.status, a.body)
	}
	// A call may read only a few megabytes of kept responses.
	var bigs []string
	for range 6 {
		bigs = append(bigs, `{"type":"item_reference","id":"`+gjson.Get(ask(`"input":[`+big+`]`).body, "output.0.id").Str+`"}`)
	}
	if few, all := ask(`"input":[`+strings.Join(bigs[:3], ",")+`]`), ask(`"input":[`+strings.Join(bigs, ",")+`]`); few.status != 200 || all.status != 400 {
		t.Errorf("%d %.300s, %d %.300s", few.status, few.body, all.status, all.body)
	}
	w.wait(time.Hour)
	for _, body := range []string{
		`"input":"x","previous_response_id":"` + id(private) + `"`, `"input":"x","previous_response_id":"` + id(large) + `"`,
		`"input":"x","previous_response_id":"` + id(old) + `"`, `"input":"x","previous_response_id":"resp_x"`, `"input":"x","previous_response_id":""`,

		`"input":[` + reference + `]`, `"input":[{"type":"item_reference"}]`,
	} {
		a := ask(body)
		if a.status != 400 || gjson.Get(a.body, "error.code").Str != "previous_response_not_found" ||
			!strings.Contains(gjson.Get(a.body, "error.message").Str, `"store": false`) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
}

func TestKeptResponsesKeepLimitsOfCredentials(t *testing.T) {
	w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, always(200, whole))}, responses: responses(t),
		rows: oneRow + strings.Replace(oneRow, "small", "other", 1)})
	kept := gjson.Parse(w.post("/v1/responses", `{"model":"small","input":"x"}`).body)
	id, item := kept.Get("id").Str, kept.Get("output.0.id").Str
	key := w.limitedKey(func(key *credential.Key) { key.Limits.Models = []string{"other"} })
	ask := func(key, body string) answer {
		return w.do(w.request(t.Context(), "POST", "/v1/responses", key, strings.NewReader(`{"model":"other",`+body+`}`)))
	}
	limited, any := w.token(credential.Scope{Models: []string{"other"}}), w.token(credential.Scope{})
	for name, a := range map[string]answer{
		"GET with a key": w.storedResponse("GET", id, key), "GET with a token": w.storedResponse("GET", id, limited),
		"DELETE with a key": w.storedResponse("DELETE", id, key), "DELETE with a token": w.storedResponse("DELETE", id, any),
		"previous":  ask(key, `"input":"x","previous_response_id":"`+id+`"`),
		"reference": ask(limited, `"input":[{"type":"item_reference","id":"`+item+`"}]`),
	} {
		if a.status != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if a := w.storedResponse("GET", id, any); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}
