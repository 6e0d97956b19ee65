package openaimedia_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/openaimedia"
)

// A redirect would send the key and a DELETE to another server.
func TestRedirectIsNotFollowed(t *testing.T) {
	found, err := tools()
	if err != nil {
		t.Fatal(err)
	}
	var followed atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
	t.Cleanup(other.Close)
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		server := httptest.NewServer(http.RedirectHandler(other.URL, status))
		t.Cleanup(server.Close)
		e, err := openaimedia.New(openaimedia.Config{
			Videos: server.URL, Images: server.URL, Key: "secret", Runner: found, PollEvery: time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []catalog.Kind{catalog.Edit, catalog.Image} {
			if _, err := e.Run(t.Context(), newSpec(t, kind), func(engine.Progress) {}); err == nil {
				t.Errorf("%s after a %d: no error", kind, status)
			}
		}
	}
	if n := followed.Load(); n > 0 {
		t.Errorf("%d redirects were followed", n)
	}
}
