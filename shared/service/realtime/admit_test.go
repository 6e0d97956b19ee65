package realtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
)

// The server accepts the upgrade before it sends the error (docs/contract/realtime.md#rejections).
func TestSessionRequiresValidCredential(t *testing.T) {
	const page = "https://app.example.com"
	w := newWorld(t, setup{origins: []string{page, "https://other.example.com"}})
	revoked := w.newKey("ck_revoked_key")
	orphaned := w.issue(revoked, credential.Scope{}, time.Hour)
	orphan := orphaned.Secret
	w.revoke(revoked)
	expired := w.mint(studio, credential.Scope{}, time.Millisecond)
	time.Sleep(2 * time.Millisecond)
	token := func(scope credential.Scope) string { return w.mint(studio, scope, time.Hour) }
	otherRoutes := w.newKey("ck_other_routes", func(k *credential.Key) {
		k.Limits.Routes = []credential.RouteGroup{credential.JobRoutes, credential.TokenRoutes}
	})
	const key, model, origin = "Invalid API key", "Model not allowed", "Origin not allowed"
	for _, c := range []struct {
		name, model, secret string
		header              []string
		reason              string // "" if the client is accepted
	}{
		{"a key", "gen-2.5", studio, nil, ""},
		{"a key in the header", "gen-2.5", "", []string{"X-Api-Key", studio}, ""},
		{"a token", "gen-2.5", token(credential.Scope{}), nil, ""},
		{"a token as a JWT", "gen-2.5", w.issue(studio, credential.Scope{}, time.Hour).JWT, nil, ""},
		{
			"a JWT of another model", "gen-2.5", w.issue(studio, credential.Scope{Models: []string{"gen-2.1"}}, time.Hour).JWT,
			nil, model,
		},
		{"a JWT of a revoked key", "gen-2.5", orphaned.JWT, nil, key},
		{"an alias", "gen-latest", studio, nil, ""},
		{"a deprecated alias", "gen-vton-2", studio, nil, ""},
		{"a token of the model's alias", "gen-2.5", token(credential.Scope{Models: []string{"gen-latest"}}), nil, ""},
		{"no key", "gen-2.5", "", nil, key},
		{"garbage", "gen-2.5", "hello", nil, key},
		{"an unknown key", "gen-2.5", "ck_0123456789", nil, key},
		{"an unknown token", "gen-2.5", "ek_0123456789", nil, key},
		{"a wrong key in the header and a correct one in the query", "gen-2.5", studio, []string{"X-Api-Key", "ck_0123456789"}, key},
		{"a revoked key", "gen-2.5", revoked, nil, key},
		{"a token of a revoked key", "gen-2.5", orphan, nil, key},
		{"an expired token", "gen-2.5", expired, nil, key},
		{"a wrong key and a wrong model", "gen-9", "ck_0123456789", nil, key},
		{"no model", "", studio, nil, model},
		{"an unknown model", "gen-9", studio, nil, model},
		{"a model without realtime", "gen-clip", studio, nil, model},
		{"an image model", "gen-image-2", studio, nil, model},
		{"an expired key", "gen-2.5", w.newKey("ck_expired_key", func(k *credential.Key) {
			k.ExpiresAt = k.CreatedAt
		}), nil, key},
		{"a key for other routes", "gen-2.5", otherRoutes, nil, "Route not allowed"},
		{"a token of a key for other routes", "gen-2.5", w.mint(otherRoutes, credential.Scope{}, time.Hour), nil,
			"Route not allowed"},
		{"a key for another model", "gen-2.1", w.newKey("ck_other_model", func(k *credential.Key) {
			k.Limits.Models = []string{"gen-2.5"}
		}), nil, model},
		{"a key for the model and realtime sessions", "gen-2.5", w.newKey("ck_this_model", func(k *credential.Key) {
			k.Limits = credential.Limits{
				Models: []string{"gen-latest"}, Routes: []credential.RouteGroup{credential.RealtimeRoutes},
			}
		}), nil, ""},
		{"a model outside the token's scope", "gen-2.1", token(credential.Scope{Models: []string{"gen-2.5"}}), nil, model},
		{"an allowed page", "gen-2.5", studio, []string{"Origin", page}, ""},
		{"a page that is not allowed", "gen-2.5", studio, []string{"Origin", "https://evil.example.com"}, origin},
		{"a page of the token", "gen-2.5", token(credential.Scope{Origins: []string{page}}), []string{"Origin", page}, ""},
		{
			"a page outside the token's scope", "gen-2.5", token(credential.Scope{Origins: []string{page}}),
			[]string{"Origin", "https://other.example.com"}, origin,
		},
		{"a token of a page, without a page", "gen-2.5", token(credential.Scope{Origins: []string{page}}), nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := w.dial(c.model, c.secret, c.header...)
			client.t = t
			m := client.next()
			if c.reason == "" {
				if m.Type != "session_started" {
					t.Errorf("got %+v, want a session", m)
				}
				client.leave()
				return
			}
			if m.Type != "error" || m.Error != c.reason {
				t.Errorf("got %+v, want the error %q", m, c.reason)
			}
			client.ends("", websocket.StatusPolicyViolation, c.reason)
		})
	}
	w.active("studio", 0)
	if log := w.log.String(); strings.Contains(log, studio) || strings.Contains(log, "api_key") ||
		strings.Contains(log, "ek_") {
		t.Error("the log has keys or queries in it")
	}
}

func TestSessionsAreLimited(t *testing.T) {
	w := newWorld(t, setup{limit: 2})
	first := w.open("gen-2.5", studio)
	w.open("gen-2.1", w.mint(studio, credential.Scope{}, time.Hour))
	w.active("studio", 2)
	w.dial("gen-2.5", studio).rejected(websocket.StatusTryAgainLater, isFull)
	w.open("gen-2.5", rival)
	w.active("studio", 2)

	// Closing or losing the connection frees the slot immediately.
	first.leave()
	w.active("studio", 1)
	second := w.open("gen-2.5", studio)
	second.drop()
	w.active("studio", 1)
	w.open("gen-2.5", studio)
}

func TestStoreFailureAsksClientsToRetry(t *testing.T) {
	var failing atomic.Pointer[error]
	w := newWorld(t, setup{failing: &failing})
	for _, err := range []error{
		errors.New("the disk is missing"), context.DeadlineExceeded, fault.New(
			fault.Unavailable, "The database is busy. Try again.",
		),
	} {
		failing.Store(&err)
		w.dial("gen-2.5", studio).rejected(websocket.StatusTryAgainLater, tryAgain)
	}
	failing.Store(nil)
	w.open("gen-2.5", studio)
	w.active("studio", 1)
}

func TestStreamAnswersPreflight(t *testing.T) {
	w := newWorld(t, setup{origins: []string{"https://app.example.com"}})
	for origin, want := range map[string]string{
		"https://app.example.com": "https://app.example.com", "https://b.example.com": "",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, "http://"+w.address+"/v1/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Origin", origin)
		request.Header.Set("Access-Control-Request-Method", "GET")
		request.Header.Set("Access-Control-Request-Headers", "x-api-key, x-other")
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusNoContent ||
			response.Header.Get("Access-Control-Allow-Headers") != "x-api-key, x-other" ||
			response.Header.Get("Access-Control-Allow-Origin") != want {
			t.Errorf("%s: %d %v", origin, response.StatusCode, response.Header)
		}
	}
}

func TestPlainRequestGetsHTTPError(t *testing.T) {
	w := newWorld(t, setup{})
	for _, c := range []struct {
		method string
		header [][2]string
		status int
	}{
		{"GET", nil, http.StatusUpgradeRequired},
		{"HEAD", nil, http.StatusUpgradeRequired},
		{"POST", nil, http.StatusMethodNotAllowed},
		{"POST", [][2]string{{"Upgrade", "websocket"}, {"Connection", "Upgrade"}}, http.StatusMethodNotAllowed},
		// no WebSocket version
		{"GET", [][2]string{{"Upgrade", "websocket"}, {"Connection", "Upgrade"}}, http.StatusUpgradeRequired},
		// no WebSocket key
		{
			"GET", [][2]string{{"Upgrade", "websocket"}, {"Connection", "keep-alive, Upgrade"}, {"Sec-WebSocket-Version", "13"}},
			http.StatusBadRequest,
		},
		{"GET", [][2]string{{"Upgrade", "h2c"}, {"Connection", "Upgrade"}}, http.StatusUpgradeRequired},
	} {
		request, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+w.address+"/v1/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range c.header {
			request.Header.Set(field[0], field[1])
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		var problem struct{ Detail string }
		if err := json.Unmarshal(body, &problem); c.method != http.MethodHead && (err != nil || problem.Detail == "") {
			t.Errorf("%s %v: the error is %s", c.method, c.header, body)
		}
		if allowed := response.Header.Get("Access-Control-Allow-Origin"); allowed != "*" {
			t.Errorf("%s %v: a page may not read the response: %q", c.method, c.header, allowed)
		}
		if allow := response.Header.Get("Allow"); (allow == "GET, HEAD") != (c.status == http.StatusMethodNotAllowed) {
			t.Errorf("%s %v: Allow is %q", c.method, c.header, allow)
		}
		if response.StatusCode != c.status {
			t.Errorf("%s %v: %d %s, want %d", c.method, c.header, response.StatusCode, body, c.status)
		}
	}
}
