package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/ratelimit"
)

// See docs/contract/limits.md#tiers.
func TestRequestRateIsLimited(t *testing.T) {
	w := newWorld(t, setup{rate: ratelimit.Rate{PerSecond: 0.01, Burst: 3}})
	w.stopClock()
	second := w.newKey("studio")
	id := w.submit(studio)
	limits := func(a answer) string {
		return strings.Join([]string{a.header.Get("RateLimit-Limit"), a.header.Get("RateLimit-Remaining"),
			a.header.Get("Retry-After")}, " ")
	}
	// All keys of the account share the limit. Unauthenticated calls do not count.
	if a := w.newToken(second, ""); a.status != 200 || limits(a) != "3 1 " || a.header.Get("RateLimit-Reset") != "200" {
		t.Errorf("the second: %d %v", a.status, a.header)
	}
	if a := w.newToken("", ""); a.status != 401 || limits(a) != "  " {
		t.Errorf("without a key: %d %v", a.status, a.header)
	}
	if a := w.post("gen-9", studio); a.status != 404 || limits(a) != "3 0 " {
		t.Errorf("the third: %d %v", a.status, a.header)
	}
	for _, call := range []func() answer{
		func() answer { return w.newToken(studio, "no JSON") },
		func() answer { return w.post("gen-9", second) }, // checked before the model is looked up
		func() answer { return w.post("gen-pro-t2v", studio, text("prompt", "x")) },
		func() answer { return w.request(http.MethodPost, "/v1/generate/gen-image-2", studio, nil) },
	} {
		a := call()
		if a.status != 429 || limits(a) != "3 0 100" || a.header.Get("RateLimit-Reset") != "300" || a.detail() == "" {
			t.Errorf("over the rate: %d %s %v", a.status, a.body, a.header)
		}
	}
	if a := w.newToken(rival, ""); a.status != 200 || limits(a) != "3 2 " {
		t.Errorf("another account: %d %v", a.status, a.header)
	}
	for range 20 {
		if a := w.get("/v1/jobs/"+id, studio); a.status != 200 || limits(a) != "  " {
			t.Fatalf("a poll: %d %v", a.status, a.header)
		}
		if a := w.get("/v1/jobs/"+id+"/content", studio); a.status != 409 || limits(a) != "  2" {
			t.Fatalf("a read of the content: %d %v", a.status, a.header)
		}
	}
	w.later.Store(int64(100 * time.Second))
	if a := w.newToken(studio, ""); a.status != 200 || limits(a) != "3 0 " {
		t.Errorf("after Retry-After: %d %s %v", a.status, a.body, a.header)
	}
}

func TestTierWithoutRateIsUnlimited(t *testing.T) {
	w := newWorld(t, setup{})
	if a := w.newToken(studio, ""); a.status != 200 || a.header.Get("RateLimit-Limit") != "" {
		t.Errorf("%d %v", a.status, a.header)
	}
}
