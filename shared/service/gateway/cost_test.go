package gateway_test

import (
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/usage"
)

const pricedRows = `
  - {id: small, routes: [chat, completions], context_length: 8192, max_output_length: 1000, price: {input: 1, cached: 0.5, output: 2, reasoning: 4}, fallbacks: [second], upstreams: [{name: first, url: URL0, model: weights}]}
  - {id: second, routes: [chat, completions], context_length: 8192, max_output_length: 1000, price: {input: 10, output: 20, call: 0.001}, upstreams: [{name: first, url: URL1, model: weights}]}
  - {id: free, routes: [chat], context_length: 8192, max_output_length: 1000, upstreams: [{name: first, url: URL1, model: weights}]}
`

// cost is the price of the test response called whole, which uses 11 prompt tokens (3 cached) and 5 completion tokens
// (2 for reasoning).
const cost, ofSecond = "0.0000235", "0.00121"

func keyOfStudio(t *testing.T) string {
	t.Helper()
	key, err := credential.NewKey(studio, "studio", credential.DefaultTier, "", time.Now())
	must(t, err)
	return key.ID
}

// On every route, the response contains the cost, and the usage sums up the costs.
func TestCostIsReportedAndMetered(t *testing.T) {
	t.Parallel()
	closed := strings.Replace(whole, `"usage":{`, `"usage":{"cost":99,`, 1)
	for _, c := range []struct {
		name, path, body string
		first            func(*call)
		model, cost      string
	}{
		{"a chat", "/v1/chat/completions", plain, always(200, whole), "small", cost},
		{"an upstream with its own cost", "/v1/chat/completions", plain, always(200, closed), "small", cost},
		{"a fallback", "/v1/chat/completions", plain, always(503, `{}`), "second", ofSecond},
		{"Messages", "/v1/messages", `{"model":"small","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
			always(200, whole), "small", cost},
		{"Responses", "/v1/responses", `{"model":"small","input":"hi"}`, always(200, whole), "small", cost},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, setup{rows: pricedRows,
				upstreams: []*modelServer{newUpstream(t, c.first), newUpstream(t, always(200, whole))}})
			w.stopClock()
			a := w.post(c.path, c.body)
			if a.status != 200 || a.header.Get("X-Cost") != c.cost+" USD" || !strings.Contains(a.body, `"cost":`+c.cost) ||
				strings.Contains(a.body, `"cost":99`) {
				t.Errorf("%d, %v, %s", a.status, a.header, a.body)
			}
			today := string(usage.DayOf(w.now()))
			row := `"requests":1,"prompt_tokens":11,"completion_tokens":5,"cached_tokens":3,"reasoning_tokens":2,` +
				`"estimated":0,"cost":` + c.cost + `,"currency":"USD"}]}`
			for query, want := range map[string]string{
				"":                          `{"data":[{"day":"` + today + `","model":"` + c.model + `",` + row,
				"?group_by=model":           `{"data":[{"model":"` + c.model + `",` + row,
				"?group_by=key&format=json": `{"data":[{"key":"` + keyOfStudio(t) + `",` + row,
			} {
				if a := w.get("/v1/usage"+query, studio); a.body != want {
					t.Errorf("usage%s: %d %s, want %s", query, a.status, a.body, want)
				}
			}
		})
	}
}

// A stream reports its cost in a trailer, because its header is sent before the cost is known.
func TestStreamReportsItsCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{rows: pricedRows, upstreams: []*modelServer{
		newUpstream(t, always(503, `{}`)),
		newUpstream(t, func(c *call) {
			c.stream()
			c.write(eventStream(chunk("one"), last, used, done))
		}),
	}})
	a := w.chat(strings.Replace(streamed, `{`, `{"stream_options":{"include_usage":true},`, 1))
	if a.status != 200 || a.trailer.Get("X-Cost") != ofSecond+" USD" || a.header.Get("X-Cost") != "" ||
		!strings.Contains(a.body, `"cost":`+ofSecond) {
		t.Errorf("%d, %v, %s", a.status, a.trailer, a.body)
	}
	if a := w.chat(strings.Replace(plain, "small", "free", 1)); a.header.Get("X-Cost") != "" {
		t.Errorf("a model without a price: %v", a.header)
	}
}

// A client token's usage has its label, and still counts as its key's usage.
func TestUsageIsGroupedByLabel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{rows: pricedRows, upstreams: []*modelServer{newUpstream(t, always(200, whole)), newUpstream(t, always(200, whole))}})
	w.stopClock()
	for _, secret := range []string{studio, w.token(credential.Scope{Label: "customer=acme?,plan=é"}),
		w.token(credential.Scope{Label: "customer=acme?,plan=é"}), w.token(credential.Scope{})} {
		a := w.do(w.request(t.Context(), "POST", "/v1/chat/completions", secret, strings.NewReader(plain)))
		if a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	key, label := keyOfStudio(t), `"customer=acme?,plan=é"`
	for groups, want := range map[string][]string{
		"label": {`{"requests":2,`, `{"label":` + label + `,"requests":2,`}, "key": {`{"key":"` + key + `","requests":4,`},
		"key,label": {`{"key":"` + key + `","requests":2,`, `{"key":"` + key + `","label":` + label + `,"requests":2,`},
	} {
		a := w.get("/v1/usage?group_by="+groups, studio)
		if strings.Count(a.body, `"requests"`) != len(want) {
			t.Errorf("by %s: %s", groups, a.body)
		}
		for _, row := range want {
			if !strings.Contains(a.body, row) {
				t.Errorf("by %s: %s, want %s in it", groups, a.body, row)
			}
		}
	}
}

func TestUsageQueriesAreValidated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{rows: pricedRows,
		upstreams: []*modelServer{newUpstream(t, always(200, whole)), newUpstream(t, always(200, whole))}})
	w.stopClock()
	w.chat(plain)
	w.chat(strings.Replace(plain, "small", "free", 1))
	a := w.get("/v1/usage?format=csv&group_by=key,model", studio)
	const columns = "requests,prompt_tokens,completion_tokens,cached_tokens,reasoning_tokens,estimated," +
		"session_seconds,jobs,cost,currency,jobs_completed,batch_requests,batch_cost,audio_seconds,characters\r\n"
	key := keyOfStudio(t)
	want := "key,model," + columns + key + ",free,1,11,5,3,2,0,0,0,,,0,0,,0,0\r\n" + key +
		",small,1,11,5,3,2,0,0,0,0.0000235,USD,0,0,,0,0\r\n"
	if a.status != 200 || a.body != want || !strings.HasPrefix(a.header.Get("Content-Type"), "text/csv") {
		t.Errorf("%d %v\n%s, want\n%s", a.status, a.header, a.body, want)
	}
	if a := w.get("/v1/usage?format=csv", rival); strings.Count(a.body, "\n") != 1 {
		t.Errorf("an empty table is %q", a.body)
	}
	ofAccount := "account," + columns + "studio,2,22,10,6,4,0,0,0,0.0000235,USD,0,0,,0,0\r\n"
	if a := w.get("/v1/usage?format=csv&group_by=account", studio); a.body != ofAccount {
		t.Errorf("usage by account: %s, want %s", a.body, ofAccount)
	}
	for query, param := range map[string]string{
		"group_by=tier": "group_by", "group_by=day,day": "group_by", "group_by=day,": "group_by", "format=xml": "format",
	} {
		if a := w.get("/v1/usage?"+query, studio); a.status != 400 || !strings.Contains(a.body, `"param":"`+param+`"`) {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
}
