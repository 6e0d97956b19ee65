package api_test

import (
	"compress/gzip"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/usage"
)

func (w *world) newToken(key, body string) answer {
	w.t.Helper()
	return w.request(http.MethodPost, "/v1/client/tokens", key, strings.NewReader(body), "Content-Type: application/json")
}

// See docs/contract/auth.md#client-tokens. testdata/golden omits random values.
func TestClientTokenRequestIsValidated(t *testing.T) {
	w := newWorld(t, setup{})
	names := func(n int, name string) string {
		return `["` + strings.Join(strings.Fields(strings.Repeat(name+" ", n)), `","`) + `"]`
	}
	var outcomes []outcome
	for _, c := range []struct{ says, body string }{
		{"no body", ""},
		{"a blank body", " \n"},
		{"null", "null"},
		{"an empty object", "{}"},
		{"every field null",
			`{"expiresIn": null, "allowedModels": null, "allowedOrigins": null, "constraints": null, "metadata": null}`},
		{"unknown fields are ignored", `{"surprise": [1]}`},
		{"every field",
			`{"expiresIn": 3600, "allowedModels": ["gen-latest", "gen-vton-3.5"], "allowedOrigins": ["https://App.example.com", "http://localhost:3000"],
			"constraints": {"realtime": {"maxSessionDuration": 120}}, "metadata": {"user": "née 7"}}`},
		{"expiresIn 1 is the minimum", `{"expiresIn": 1}`},
		{"expiresIn may have a fraction of zeros", `{"expiresIn": 6.0e1}`},
		{"expiresIn 0", `{"expiresIn": 0}`},
		{"expiresIn 3601", `{"expiresIn": 3601}`},
		{"expiresIn far above the maximum", `{"expiresIn": 1e999}`},
		{"expiresIn far below the minimum", `{"expiresIn": -1e999}`},
		{"expiresIn with a fraction", `{"expiresIn": 1.5}`},
		{"expiresIn as text", `{"expiresIn": "60"}`},
		{"expiresIn true", `{"expiresIn": true}`},
		{"20 allowedModels", `{"allowedModels": ` + names(20, "gen-2.5") + `}`},
		{"21 allowedModels", `{"allowedModels": ` + names(21, "x") + `}`},
		{"unknown allowedModels", `{"allowedModels": ["gen-2.5", "gen-9", "gen-2.1", "acme-2.5"]}`},
		{"allowedModels of the inference gateway, including a placeholder",
			`{"allowedModels": ["cutroom-echo", "gen-2.1", "cutroom-chat"]}`},
		{"empty allowedModels", `{"allowedModels": []}`},
		{"allowedModels is a list", `{"allowedModels": "gen-2.5"}`},
		{"allowedModels is a list of strings", `{"allowedModels": ["gen-2.5", 25, null, ["gen-2.5"]]}`},
		{"allowedOrigins of every kind",
			`{"allowedOrigins": ["https://a.example", "http://127.0.0.1:8080", "http://[::1]:3000", "capacitor://localhost"]}`},
		{"malformed allowedOrigins",
			`{"allowedOrigins": ["a.example", "https://a.example/", "https://a.example/path", "https://*.example", "*", ` +
				`"null", "", "https://u@a.example", "https://a.example:", "https://a b"]}`},
		{"21 allowedOrigins", `{"allowedOrigins": ` + names(21, "https://a.example") + `}`},
		{"empty constraints", `{"constraints": {}}`},
		{"empty constraints.realtime", `{"constraints": {"realtime": {}}}`},
		{"constraints is an object", `{"constraints": 5}`},
		{"constraints.realtime is an object", `{"constraints": {"realtime": [5]}}`},
		{"maxSessionDuration 0", `{"constraints": {"realtime": {"maxSessionDuration": 0}}}`},
		{"maxSessionDuration as text", `{"constraints": {"realtime": {"maxSessionDuration": "long"}}}`},
		{"metadata is an object", `{"metadata": ["x"]}`},
		{"metadata of 4096 bytes", `{"metadata": {"k": "` + strings.Repeat("x", 4096-len(`{"k":""}`)) + `"}}`},
		{"metadata of 4097 bytes", `{"metadata": {"k": "` + strings.Repeat("x", 4097-len(`{"k":""}`)) + `"}}`},
		{"all problems, in the order of the fields",
			`{"metadata": 1, "constraints": {"realtime": {"maxSessionDuration": -1}}, "allowedOrigins": ["x"], ` +
				`"allowedModels": ["x"], "expiresIn": "x"}`},
		{"no JSON", `{"expiresIn": 60`},
		{"data after the JSON", `{} {}`},
		{"not UTF-8", "{\"metadata\": {\"k\": \"\xff\"}}"},
		{"a list", `[{"expiresIn": 60}]`},
		{"a string", `"expiresIn"`},
	} {
		before := w.now()
		a := w.newToken(studio, c.body)
		if a.status != http.StatusOK {
			outcomes = append(outcomes, w.refusal(c.says, a))
			continue
		}
		var body map[string]any
		if err := json.Unmarshal([]byte(a.body), &body); err != nil {
			t.Fatal(err)
		}
		secret, _ := body["apiKey"].(string)
		token, _ := body["token"].(string)
		expires, err := time.Parse("2006-01-02T15:04:05.000Z", fmt.Sprint(body["expiresAt"]))
		if !strings.HasPrefix(secret, "ek_") || strings.Count(token, ".") != 2 || err != nil {
			t.Errorf("%s: %s", c.says, a.body)
		}
		body["apiKey"], body["token"], body["expiresAt"] = "ek_…", "a JWT",
			fmt.Sprintf("in %.0f s", expires.Sub(before).Seconds())
		outcomes = append(outcomes, outcome{c.says, a.status, []any{body}})
	}
	golden(t, "client-tokens", outcomes)
}

func (w *world) refusal(says string, a answer) outcome {
	w.t.Helper()
	o := outcome{says: says, status: a.status}
	for _, p := range w.problems(a) {
		o.lines = append(o.lines, p)
	}
	return o
}

func TestOnlyTheHashOfAClientTokenIsStored(t *testing.T) {
	w := newWorld(t, setup{})
	a := w.newToken(studio, `{"expiresIn": 90, "allowedModels": ["gen-latest"], "allowedOrigins": ["https://a.example"],
		"constraints": {"realtime": {"maxSessionDuration": 30}}, "metadata": { "user": 9007199254740993 }}`)
	var body struct{ APIKey, Token string }
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	token, err := w.keys.FindToken(t.Context(), credential.HashOf(body.APIKey))
	if err != nil {
		t.Fatal(err)
	}
	if token.Key.Account != "studio" || token.Scope.Models[0] != "gen-latest" ||
		token.Scope.Origins[0] != "https://a.example" ||
		token.Scope.MaxSession != 30*time.Second || string(token.Metadata) != `{"user":9007199254740993}` ||
		token.ExpiresAt.Sub(token.CreatedAt) != 90*time.Second {
		t.Errorf("got %+v", token)
	}
	if strings.Contains(w.log.String(), body.APIKey) || strings.Contains(w.log.String(), body.Token) {
		t.Error("the token is in the log")
	}
	if a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the response may be cached: %v", a.header)
	}
}

// A backend that knows only the key set can verify a token, and POST /v1/verify returns the same claims.
func TestTokensAreVerified(t *testing.T) {
	w := newWorld(t, setup{})
	var set struct{ Keys []map[string]string }
	a := w.get("/.well-known/jwks.json", "")
	if err := json.Unmarshal([]byte(a.body), &set); err != nil || a.status != 200 || len(set.Keys) != 3 ||
		a.header.Get("Cache-Control") != "public, max-age=3600" {
		t.Fatalf("%d %v %s", a.status, a.header, a.body)
	}
	var made struct{ APIKey, Token string }
	a = w.newToken(studio, `{"allowedModels": ["gen-2.6"], "allowedOrigins": ["https://a.example"],
		"constraints": {"realtime": {"maxSessionDuration": 30}}}`)
	if err := json.Unmarshal([]byte(a.body), &made); err != nil {
		t.Fatal(err)
	}
	signed, signature, _ := strings.Cut(made.Token, ".")
	claims, signature, _ := strings.Cut(signature, ".")
	decoded := func(text string) []byte {
		decoded, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return decoded
	}
	var header map[string]string
	if err := json.Unmarshal(decoded(signed), &header); err != nil || header["alg"] != "EdDSA" {
		t.Fatalf("the header is %v, %v", header, err)
	}
	verified := false
	for _, key := range set.Keys {
		if len(key) != 6 {
			t.Errorf("the key has other members: %v", key)
		}
		verified = verified || key["kid"] == header["kid"] &&
			ed25519.Verify(decoded(key["x"]), []byte(signed+"."+claims), decoded(signature))
	}
	if !verified {
		t.Errorf("no key verifies %s", made.Token)
	}
	want := string(decoded(claims))
	for _, part := range []string{`"iss":"cutroom"`, `"aud":["cutroom"]`, `"sub":"studio"`, `"models":["gen-2.6"]`,
		`"origins":["https://a.example"]`, `"parent_api_key_id":"` + idOf(studio) + `"`,
		`"constraints":{"realtime":{"maxSessionDuration":30}}`} {
		if !strings.Contains(want, part) {
			t.Errorf("the claims are %s", want)
		}
	}
	for _, secret := range []string{made.APIKey, made.Token} {
		if a := w.request(http.MethodPost, "/v1/verify", secret, nil); a.status != 200 || a.body != want {
			t.Errorf("%d %s, want %s", a.status, a.body, want)
		}
	}
	if a := w.request(http.MethodPost, "/v1/verify", studio, nil); a.status != 200 ||
		strings.Contains(a.body, "jti") || strings.Contains(a.body, "exp") {
		t.Errorf("a permanent key: %d %s", a.status, a.body)
	}
	w.later.Store(int64(time.Hour))
	for name, secret := range map[string]string{
		"an expired token": made.Token, "no algorithm": "eyJhbGciOiJub25lIn0." + claims + ".", "a long JWT": "eyJ" + strings.Repeat("a", 12<<10) + "..",
	} {
		if a := w.request(http.MethodPost, "/v1/verify", secret, nil); a.status != 401 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

// The labels of a token are in its JWT, and in the usage of the jobs that it submits.
func TestAttributionLabelsUsage(t *testing.T) {
	w := newWorld(t, setup{})
	var made struct{ APIKey, Token string }
	a := w.newToken(studio, `{"metadata": {"role": "viewer", "attribution": {"plan": "pro", "customer": "acme"}}}`)
	if err := json.Unmarshal([]byte(a.body), &made); err != nil {
		t.Fatal(err)
	}
	if a := w.request(http.MethodPost, "/v1/verify", made.Token, nil); !strings.Contains(a.body, `"attribution":{"plan":"pro","customer":"acme"}`) ||
		strings.Contains(a.body, "viewer") {
		t.Errorf("the claims are %s", a.body)
	}
	w.accepted(w.post("gen-pro-t2v", made.APIKey, text("prompt", "a")))
	w.submit(studio)
	day := usage.DayOf(w.now())
	totals, err := w.usage.Totals(t.Context(), "studio", day, day, usage.ByKey|usage.ByLabel)
	if err != nil || len(totals) != 2 || totals[0].Key != totals[1].Key || totals[0].Label != "" ||
		totals[1].Label != "customer=acme,plan=pro" || totals[1].Jobs != 1 {
		t.Errorf("%+v, %v", totals, err)
	}
	for _, wrong := range []string{`"acme"`, `{"customer": 5}`, `["acme"]`, `{"a": "` + strings.Repeat("x", 127) + `"}`, `{"a": "\u0000"}`} {
		if a := w.newToken(studio, `{"metadata": {"attribution": `+wrong+`}}`); a.status != 422 {
			t.Errorf("%s: %d %s", wrong, a.status, a.body)
		}
	}
	for _, right := range []string{"null", "{}", `{"a": "` + strings.Repeat("x", 126) + `"}`} {
		if a := w.newToken(studio, `{"metadata": {"attribution": `+right+`}}`); a.status != 200 {
			t.Errorf("%s: %d %s", right, a.status, a.body)
		}
	}
}

func TestTokenBodyIsLimited(t *testing.T) {
	w := newWorld(t, setup{})
	long := `{"metadata": {"k": "` + strings.Repeat("x", 2<<20) + `"}}`
	if a := w.newToken(studio, long); a.status != 413 || a.detail() != "The request body is larger than 65536 bytes." {
		t.Errorf("declared: %d %s", a.status, a.body)
	}
	a := w.request(http.MethodPost, "/v1/client/tokens", studio, struct{ *strings.Reader }{strings.NewReader(long)})
	if a.status != 413 {
		t.Errorf("in chunks: %d %s", a.status, a.body)
	}
}

func TestCompressedJSONIsRead(t *testing.T) {
	w := newWorld(t, setup{})
	zipped := func(text string) string {
		var b strings.Builder
		z := gzip.NewWriter(&b)
		io.WriteString(z, text)
		z.Close()
		return b.String()
	}
	for _, c := range []struct {
		coding, body string
		status       int
	}{
		{"gzip", zipped(`{"expiresIn": 90}`), 200},
		{"gzip", zipped(`{"expiresIn": "x"}`), 422},
		{"gzip", `{"expiresIn": 90}`, 422},
		{"gzip", zipped(`{"metadata": {"k": "` + strings.Repeat("x", 2<<20) + `"}}`), 413},
		{"zstd", "\x28\xb5\x2f\xfd\x00\x68\x81\x00\x00" + `{"expiresIn":9 }`, 200}, // a window of 8 MiB and an uncompressed block
		{"zstd", "\x28\xb5\x2f\xfd\x00\x70\x81\x00\x00" + `{"expiresIn":9 }`, 422}, // a window of 16 MiB
		{"zstd", "\x28\xb5\x2f\xfd\xa0\x00\x00\x80\x00", 422},                      // one of 8 MiB without blocks
		{"zstd", "x", 422},
		{"br", "x", 415},
	} {
		a := w.request(http.MethodPost, "/v1/client/tokens", studio, strings.NewReader(c.body), "Content-Encoding: "+c.coding)
		if accepted := a.header.Get("Accept-Encoding"); a.status != c.status || (accepted == "gzip, zstd") != (c.status == 415) {
			t.Errorf("%s %.30q: %d %s %q, want %d", c.coding, c.body, a.status, a.body, accepted, c.status)
		}
	}
}
