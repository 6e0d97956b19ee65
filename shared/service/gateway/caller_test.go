package gateway_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/busytest"
)

func (w *world) token(scope credential.Scope) string { return w.issue(scope).Secret }

func (w *world) issue(scope credential.Scope) credential.Issued {
	w.t.Helper()
	key, err := keys.FindKey(w.t.Context(), credential.HashOf(studio))
	must(w.t, err)
	issued, token, err := credential.NewToken(rand.Reader, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), key,
		credential.TokenRequest{Scope: scope, Lifetime: time.Minute}, w.now())
	must(w.t, err)
	must(w.t, keys.CreateToken(w.t.Context(), token))
	return issued
}

const errorFormat = `{"error":{"message":%q,"type":%q,"param":%s,"code":%s}}`

// The order is as in docs/contract/errors.md#order-of-checks, except that the model's name is in the body.
func TestChecksRunInOrder(t *testing.T) {
	w := newWorld(t, setup{
		upstreams: []*modelServer{newUpstream(t, always(200, whole))}, tier: credential.Tier{InferenceRequestsPerMinute: 5},
		rows: oneRow + `
  - {id: talker, routes: [chat], context_length: 8, max_output_length: 8, upstreams: [{url: URL0}]}
  - {id: later, placeholder: true}
`})
	w.stopClock()
	scoped := w.token(credential.Scope{Models: []string{"talker"}, Origins: []string{"https://a.example"}})
	const (
		model   = `{"model":"none","messages":0}`
		known   = `{"model":"small","messages":0}`
		nothing = `null`
	)
	for _, c := range []struct {
		name, method, path, key, body string
		fields                        []string
		status                        int
		want                          string
	}{
		{"the root path", "GET", "/", "", "", nil, 200, `{"service":"Cutroom inference gateway","models":"./v1/models","health":"./healthz"}`},
		{"an unknown route", "POST", "/v1/chat", "", model, nil, 404, fmt.Sprintf(errorFormat, "This path does not exist.", "invalid_request_error", nothing, nothing)},
		{"an unclean path", "POST", "/v1/./completions", "", model, nil, 404, fmt.Sprintf(errorFormat, "This path does not exist.", "invalid_request_error", nothing, nothing)},
		{"a wrong method", "PUT", "/v1/chat/completions", "", model, nil, 405, fmt.Sprintf(errorFormat, "This path does not support the method.", "invalid_request_error", nothing, nothing)},
		{"no key", "POST", "/v1/chat/completions", "", model, nil, 401, fmt.Sprintf(errorFormat, `An API key is required in the Authorization header, after "Bearer".`, "authentication_error", nothing, `"invalid_api_key"`)},
		{"an unknown key", "POST", "/v1/chat/completions", "ck_unknown_key", model, nil, 401, fmt.Sprintf(errorFormat, "The API key is not valid.", "authentication_error", nothing, `"invalid_api_key"`)},
		{"a token from another origin", "POST", "/v1/chat/completions", scoped, model, []string{"Origin: https://b.example"}, 403, fmt.Sprintf(errorFormat, "The client token does not allow this origin.", "permission_error", nothing, nothing)},
		{"an unknown model", "POST", "/v1/chat/completions", scoped, model, []string{"Origin: https://a.example"}, 404, ""},
		{"a token for other models", "POST", "/v1/chat/completions", scoped, known, nil, 403, ""},
		{"content", "POST", "/v1/chat/completions", studio, known, nil, 400, ""},
		{"a placeholder", "POST", "/v1/completions", studio, `{"model":"later","prompt":""}`, nil, 404, ""},
		{"a model without the route", "POST", "/v1/completions", studio, `{"model":"talker","prompt":""}`, nil, 404, ""},
		{"over the rate", "POST", "/v1/chat/completions", studio, model, nil, 429, fmt.Sprintf(errorFormat, "The account exceeded its limit of 5 requests per minute.", "rate_limit_error", nothing, `"rate_limit_exceeded"`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := w.do(w.request(t.Context(), c.method, c.path, c.key, strings.NewReader(c.body), c.fields...))
			if a.status != c.status || c.want != "" && a.body != c.want || a.header.Get("X-Request-Id") == "" ||
				a.header.Get("X-Tokens-Used") != "" {
				t.Errorf("got %d %v %s, want %d %s", a.status, a.header, a.body, c.status, c.want)
			}
			if c.status == 404 && c.path != "/v1/chat" && !strings.Contains(c.path, "/./") &&
				!strings.Contains(a.body, `"code":"model_not_found"`) {
				t.Errorf("%s", a.body)
			}
			challenge := map[string]string{"no key": `Bearer realm="cutroom"`,
				"an unknown key": `Bearer realm="cutroom", error="invalid_token"`}[c.name]
			if got := a.header.Get("WWW-Authenticate"); got != challenge {
				t.Errorf("WWW-Authenticate is %q, want %q", got, challenge)
			}
			if allow := a.header.Get("Allow"); (allow == "POST") != (c.status == 405) {
				t.Errorf("Allow is %q", allow)
			}
		})
	}
	w.recorded(0)
}

func TestRequestRateIsLimited(t *testing.T) {
	w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, always(200, whole))},
		tier: credential.Tier{InferenceRequestsPerMinute: 2}})
	w.stopClock()
	for _, left := range []string{"1", "0"} {
		a := w.chat(plain)
		if a.status != 200 || a.header.Get("X-Ratelimit-Limit-Requests") != "2" ||
			a.header.Get("X-Ratelimit-Remaining-Requests") != left {
			t.Errorf("got %d %v", a.status, a.header)
		}
		if reset, err := time.ParseDuration(a.header.Get("X-Ratelimit-Reset-Requests")); err != nil || reset <= 0 ||
			reset > time.Minute {
			t.Errorf("reset in %v: %v", reset, err)
		}
	}
	if a := w.chat(plain); a.status != 429 || a.header.Get("Retry-After") != "30" {
		t.Errorf("got %d %v %s", a.status, a.header, a.body)
	}
	w.wait(31 * time.Second)
	if a := w.chat(plain); a.status != 200 {
		t.Errorf("half a minute later: %d %s", a.status, a.body)
	}
	other := w.do(w.request(t.Context(), "POST", "/v1/chat/completions", rival, strings.NewReader(plain)))
	if other.status != 200 {
		t.Errorf("another account: %d %s", other.status, other.body)
	}
}

func TestTokenRateIsLimited(t *testing.T) {
	u := newUpstream(t, always(200, whole)) // uses 16 tokens
	w := newWorld(t, setup{upstreams: []*modelServer{u}, tier: credential.Tier{InferenceTokensPerMinute: 20}})
	w.stopClock()
	for i, left := range []string{"4", "0"} {
		if i == 1 {
			u.now(events(chunk("one"), last, used, done)) // uses 16 tokens too
		}
		a := w.chat(map[int]string{0: plain, 1: streamed}[i])
		if a.status != 200 || a.header.Get("X-Ratelimit-Limit-Tokens") != "20" {
			t.Errorf("got %d %v", a.status, a.header)
		}
		if got := a.header.Get("X-Ratelimit-Remaining-Tokens"); i == 0 && got != left {
			t.Errorf("%s tokens remain, want %s", got, left)
		}
	}
	a := w.chat(plain) // 12 tokens over the limit, at 20 per minute
	if a.status != 429 || a.header.Get("Retry-After") != "39" || !strings.Contains(a.body, "tokens per minute") {
		t.Errorf("got %d %v %s", a.status, a.header, a.body)
	}
	w.wait(40 * time.Second)
	if a := w.chat(streamed); a.status != 200 {
		t.Errorf("later: %d %s", a.status, a.body)
	}
}

func TestLargeBodiesAreRejected(t *testing.T) {
	w := newWorld(t, setup{rows: longRow, upstreams: []*modelServer{newUpstream(t, always(200, whole))}})
	for name, length := range map[string]int64{"declared": 100 << 20, "chunked": -1} {
		t.Run(name, func(t *testing.T) {
			request := w.request(t.Context(), "POST", "/v1/chat/completions", studio, io.LimitReader(zeros{}, 100<<20))
			request.ContentLength = length
			a := w.do(request)
			if a.status != 413 || !strings.Contains(a.body, `"code":"request_too_large"`) {
				t.Errorf("%d %s: %v", a.status, a.body, a.err)
			}
		})
	}
	largest := strings.Replace(plain, "one two", strings.Repeat("x", gateway.MaxBody-len(plain)+len("one two")), 1)
	if a := w.chat(largest); a.status != 200 {
		t.Errorf("%d bytes: %d %s", len(largest), a.status, a.body)
	}
	if a := w.chat(largest + " "); a.status != 413 {
		t.Errorf("%d bytes: %d %s", len(largest)+1, a.status, a.body)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestIncompleteBodiesAreRejected(t *testing.T) {
	for name, c := range map[string]struct {
		sent  string
		end   bool
		stall time.Duration
		want  string
	}{
		"truncated":        {"Content-Length: 100\r\n\r\n{", true, 0, "HTTP/1.1 400 "},
		"stalled":          {"Content-Length: 100\r\n\r\n{", false, time.Second, "HTTP/1.1 408 "},
		"an invalid chunk": {"Transfer-Encoding: chunked\r\n\r\nzz\r\n", true, 0, "HTTP/1.1 400 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			busytest.Try(t, cmp.Or(c.stall, time.Minute), func(stall time.Duration) error {
				w := newWorld(t, setup{stall: stall})
				conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
				must(t, err)
				defer conn.Close()
				fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: bearer %s\r\n%s", studio, c.sent)
				if c.end {
					conn.(*net.TCPConn).CloseWrite()
				}
				conn.SetReadDeadline(time.Now().Add(await.Max))
				line, err := bufio.NewReader(conn).ReadString('\n')
				if err != nil || !strings.HasPrefix(line, c.want) {
					return fmt.Errorf("got %q: %v, want %s", line, err, c.want)
				}
				return nil
			})
		})
	}
}

// If a caller disconnects, its upstream call is stopped, and the tokens generated so far are billed.
func TestDisconnectedCallerIsBilledForTokens(t *testing.T) {
	for _, c := range []struct {
		name, request string
		before        string
		counts        usage.Counts
	}{
		{"before the header", plain, "", counted(0)},
		{"before a stream's header", streamed, "", counted(0)},
		{"before the first chunk", streamed, "header", counted(0)},
		{"after a chunk", streamed, eventStream(chunk("one two three")), counted(3)},
		{"before the end", streamed, eventStream(chunk("one two three"), last), counted(3)},
		{"with usage on every chunk", streamed,
			eventStream(strings.Replace(chunk("one two three"), `"choices"`,
				`"usage":{"prompt_tokens":11,"completion_tokens":5},"choices"`, 1)), reported},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			entered, left := make(chan bool, 1), make(chan time.Time, 1)
			w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, func(up *call) {
				if c.before != "" {
					up.stream()
				}
				if strings.HasPrefix(c.before, "data") {
					up.write(c.before)
				}
				entered <- true
				<-up.left
				left <- time.Now()
			})}})
			ctx, leave := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			request := w.request(ctx, "POST", "/v1/chat/completions", studio, strings.NewReader(c.request))
			seen := make(chan bool, 1)
			go func() {
				response, err := client.Do(request)
				if err == nil {
					_, err = io.ReadFull(response.Body, make([]byte, 1))
					seen <- true
					io.Copy(io.Discard, response.Body)
					response.Body.Close()
				}
				ended <- err
			}()
			await.Receive(t, "entered", entered)
			if strings.HasPrefix(c.before, "data") {
				await.Receive(t, "seen", seen)
			}
			leave()
			select {
			case <-left:
			case <-time.After(await.Max):
				t.Fatal("the upstream call did not end")
			}
			if err := await.Receive(t, "ended", ended); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if r := w.recorded(1)[0]; r.Counts != c.counts {
				t.Errorf("recorded %+v, want %+v", r.Counts, c.counts)
			}
			w.completed(1)
			if o := w.completed(1)[0]; o.Status != 499 {
				t.Errorf("observed %+v", o)
			}
			if got := w.outcomes(); len(got) != 1 || got[0] != "first: abandoned" {
				t.Errorf("the outcomes are %v", got)
			}
		})
	}
}

// A shutdown is reported by an event in a stream, or by the status if nothing has been sent yet.
func TestShutdownIsReportedToCallers(t *testing.T) {
	const stopping = `{"error":{"message":"The gateway is shutting down and did not wait for the rest of the response.",` +
		`"type":"api_error","param":null,"code":"service_unavailable"}}`
	for _, c := range []struct {
		name, request string
		upstream      func(*call)
		status        int
		want          string
		records       int
	}{
		{"a stream", streamed, func(c *call) { c.stream(); c.write(eventStream(chunk("one two"))) }, 200, eventStream(asSmall(chunk("one two")), stopping, done), 1},
		{"a stream without a chunk", streamed, func(c *call) { c.stream() }, 503, stopping, 0},
		{"a response", plain, func(*call) {}, 503, stopping, 0},
		{"a large request", strings.Replace(plain, "one two", strings.Repeat("x", 64<<10), 1), func(*call) {}, 503, stopping, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			entered := make(chan bool, 1)
			w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, func(up *call) {
				c.upstream(up)
				entered <- true
				<-up.left
			})}})
			got, started := w.start("/v1/chat/completions", c.request)
			await.Receive(t, "entered", entered)
			if c.status == 200 {
				await.Receive(t, "started", started)
			}
			w.stop()
			if a := await.Receive(t, "got", got); a.err != nil || a.status != c.status || a.body != c.want ||
				(a.header.Get("Retry-After") == "1") != (c.status == 503) {
				t.Errorf("got %d %v %s: %v", a.status, a.header, a.body, a.err)
			}
			if r := w.recorded(c.records); c.records > 0 && r[0].Counts != counted(2) {
				t.Errorf("recorded %+v", r)
			}
			if o := w.completed(1)[0]; o.Code != "service_unavailable" || o.Status != c.status {
				t.Errorf("observed %+v", o)
			}
			if got := w.outcomes(); len(got) != 1 || got[0] != "first: abandoned" {
				t.Errorf("the outcomes are %v", got)
			}
		})
	}
}

func TestModelsAreListed(t *testing.T) {
	w := newWorld(t, setup{rows: oneRow + `
  - {id: org/talker:v2, routes: [chat], context_length: 80, max_output_length: 8, upstreams: [{url: URL0}]}
  - {id: later, placeholder: true}
`})
	w.stopClock()
	created := fmt.Sprint(w.now().Unix())[:5]
	one := func(id, length, context, capabilities string) string {
		return `{"id":"` + id + `","object":"model","created":` + created + `,"owned_by":"cutroom","max_output_length":` +
			length + `,"context_length":` + context + `,"capabilities":[` + capabilities + `]}`
	}
	small, talker := one("small", "1000", "8192", `"chat","completions","responses","messages"`), one("org/talker:v2", "8", "80", `"chat","responses","messages"`)
	media := one("media", "0", "0", `"videos"`)
	signed := w.issue(credential.Scope{Models: []string{"small"}})
	scoped := signed.Secret
	for _, c := range []struct {
		path, key string
		status    int
		want      string
	}{
		{"/v1/models", studio, 200, `{"object":"list","data":[` + small + `,` + talker + `,` + media + `]}`},
		{"/v1/models", scoped, 200, `{"object":"list","data":[` + small + `]}`},
		{"/v1/models/small", studio, 200, small},
		{"/v1/models/org/talker:v2", studio, 200, talker},
		{"/v1/models/org/talker:v2", scoped, 403, ""},
		{"/v1/models/media", studio, 200, media},
		{"/v1/models/media", scoped, 403, ""},
		{"/v1/models/later", studio, 404, `{"error":{"message":"The model \"later\" does not exist.","type":"invalid_request_error","param":"model","code":"model_not_found"}}`},
		{"/v1/models/none", studio, 404, ""},
		{"/v1/models", "", 401, ""},
		{"/v1/models", signed.JWT, 200, `{"object":"list","data":[` + small + `]}`},
		{"/v1/models/org/talker:v2", signed.JWT, 403, ""},
		{"/v1/models", signed.JWT + "x", 401, ""},
	} {
		a := w.get(c.path, c.key)
		body := a.body
		if i := strings.Index(body, `"created":`+created); i >= 0 {
			body = strings.ReplaceAll(body, body[i:i+len(`"created":`)+10], `"created":`+created)
		}
		if challenge := a.header.Get("WWW-Authenticate"); strings.HasPrefix(challenge, "Bearer ") != (c.status == 401) {
			t.Errorf("%s: %d with WWW-Authenticate %q", c.path, a.status, challenge)
		}
		if a.status != c.status || c.want != "" && body != c.want {
			t.Errorf("%s: %d %s, want %d %s", c.path, a.status, body, c.status, c.want)
		}
	}
}

func TestUsageIsLimited(t *testing.T) {
	w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, always(200, whole))},
		tier: credential.Tier{RequestsPerSecond: 1, Burst: 2}})
	w.stopClock()
	for _, want := range []int{200, 200, 429} {
		a := w.get("/v1/usage", studio)
		if a.status != want || (a.header.Get("Retry-After") != "") != (want == 429) {
			t.Errorf("%d %v, want %d", a.status, a.header, want)
		}
	}
	if a := w.get("/v1/usage", rival); a.status != 200 {
		t.Errorf("another account: %d %s", a.status, a.body)
	}
}

func TestUsageIsReported(t *testing.T) {
	w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, always(200, whole))}})
	w.stopClock() // midnight might pass during the test
	w.chat(plain)
	today := string(usage.DayOf(w.now()))
	row := `{"day":"` + today + `","model":"small","requests":1,"prompt_tokens":11,"completion_tokens":5,` +
		`"cached_tokens":3,"reasoning_tokens":2,"estimated":0}`
	scoped := w.token(credential.Scope{})
	for _, c := range []struct {
		query, key string
		status     int
		want       string
	}{
		{"", studio, 200, `{"data":[` + row + `]}`},
		{"?from=" + today + "&to=" + today, studio, 200, `{"data":[` + row + `]}`},
		{"?to=2020-01-31", studio, 200, `{"data":[]}`},
		{"", rival, 200, `{"data":[]}`},
		{"", scoped, 403, `{"error":{"message":"A client token cannot be used here; a permanent key is required.","type":"permission_error","param":null,"code":null}}`},
		{"?from=yesterday", studio, 400, `{"error":{"message":"A day must have the form YYYY-MM-DD.","type":"invalid_request_error","param":"from","code":null}}`},
		{"?from=2020-02-01&to=2020-01-31", studio, 400, ""},
		{"?from=2019-01-01&to=2020-01-31", studio, 400, ""},
		{"", "", 401, ""},
	} {
		if a := w.get("/v1/usage"+c.query, c.key); a.status != c.status || c.want != "" && a.body != c.want {
			t.Errorf("%s: %d %s, want %d %s", c.query, a.status, a.body, c.status, c.want)
		}
	}
}

func TestUsageHasLimitedRows(t *testing.T) {
	w := newWorld(t, setup{})
	w.stopClock()
	for i := range usage.MaxTotals + 1 {
		w.meter.records = append(w.meter.records, usage.Record{Account: "studio", Key: fmt.Sprint("key_", i), Model: "small",
			Day: usage.DayOf(w.now()), Counts: usage.Counts{Requests: 1}})
	}
	a := w.get("/v1/usage?group_by=key", studio)
	if a.status != 400 || !strings.Contains(a.body, "more than 10000 rows") {
		t.Errorf("%d, %d bytes: %.300s", a.status, len(a.body), a.body)
	}
	if a := w.get("/v1/usage", studio); a.status != 200 || !strings.Contains(a.body, `"requests":10001`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestBrowsersCanCallFromAllowedOrigins(t *testing.T) {
	w := newWorld(t, setup{origins: httpserver.Origins{"https://a.example"}})
	a := w.do(w.request(t.Context(), "OPTIONS", "/v1/chat/completions", "", nil, "Origin: https://a.example",
		"Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization, x-stainless-os"))
	if a.status != 204 || a.header.Get("Access-Control-Allow-Headers") != "authorization, x-stainless-os" ||
		a.header.Get("Access-Control-Allow-Methods") != "POST" {
		t.Errorf("a preflight: %d %v", a.status, a.header)
	}
	for origin, want := range map[string]string{"https://a.example": "https://a.example", "https://b.example": ""} {
		a := w.get("/v1/models", "", "Origin: "+origin)
		if a.status != 401 || a.header.Get("Access-Control-Allow-Origin") != want {
			t.Errorf("from %s: %d %v", origin, a.status, a.header)
		}
	}
}

func TestHealthReportsReadiness(t *testing.T) {
	var broken error
	w := newWorld(t, setup{ready: func(context.Context) error { return broken }})
	if a := w.get("/healthz", ""); a.status != 200 || a.body != `{"status":"ok"}` {
		t.Errorf("got %d %s", a.status, a.body)
	}
	broken = errors.New("the disk is missing")
	if a := w.get("/healthz", ""); a.status != 503 || strings.Contains(a.body, "disk") ||
		!strings.Contains(w.log.String(), "the disk is missing") {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

func TestTrailersCanBeDisabled(t *testing.T) {
	w := newWorld(t, setup{noTrailer: true, upstreams: []*modelServer{newUpstream(t,
		events(chunk("one"), last, used, done))}})
	if a := w.chat(streamed); a.status != 200 || len(a.trailer) != 0 || a.header.Get("Trailer") != "" {
		t.Errorf("got %d %v %v", a.status, a.header, a.trailer)
	}
}

func TestFailingMeterIsLogged(t *testing.T) {
	w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, always(200, whole))}})
	w.meter.fail = errors.New("the disk is full")
	if a := w.chat(plain); a.status != http.StatusOK || !strings.Contains(w.log.String(), "the disk is full") {
		t.Errorf("got %d %s; the log: %s", a.status, a.body, w.log)
	}
}

func TestAllowListsTheMethods(t *testing.T) {
	w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, always(200, whole))}})
	for path, allow := range map[string]string{
		"/v1/chat/completions": "POST", "/v1/completions": "POST", "/v1/models": "GET, HEAD", "/v1/models/small": "GET, HEAD",
		"/v1/usage": "GET, HEAD", "/healthz": "GET, HEAD", "/health": "GET, HEAD", "//v1/chat/completions": "POST",
		"/v1//models": "GET, HEAD",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "NONSENSE"} {
			a := w.do(w.request(t.Context(), method, path, studio, strings.NewReader(plain)))
			named := slices.Contains(strings.Split(allow, ", "), method)
			if (a.status == 405) == named || a.status == 404 || a.status >= 500 {
				t.Errorf("%s %s: status %d, but Allow is %q", method, path, a.status, allow)
			}
			if got := a.header.Get("Allow"); !named && got != allow {
				t.Errorf("%s %s: Allow is %q, want %q", method, path, got, allow)
			}
		}
	}
}
