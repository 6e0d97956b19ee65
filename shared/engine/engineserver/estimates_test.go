package engineserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/engine/engineserver"
	"cutroom/shared/testkit/await"
)

func questions() []engine.Question {
	return []engine.Question{
		{EditKind: job.EditKind{Model: "gen-2.5", Resolution: "720p", Reference: true}, Kind: catalog.Edit,
			Size: catalog.Size{Width: 1280, Height: 720}, FPS: 20, Lengths: []float64{1, 300}},
		{EditKind: job.EditKind{Model: "gen-image-2"}, Kind: catalog.Image,
			Size: catalog.Size{Width: 1280, Height: 704}, Lengths: []float64{0}},
	}
}

func TestEstimatesComeFromReachableServer(t *testing.T) {
	var asked engineserver.EstimatesRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method+" "+r.URL.Path != "POST /v1/estimates" {
			http.NotFound(w, r)
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		w.Write([]byte(`{"estimates":[{"seconds":[40,1e9]},null]}`))
	}))
	t.Cleanup(server.Close)
	pool, err := engineserver.NewPool(
		engineserver.Config{URL: scripted(t, http.StatusNotFound, "", closes)}, engineserver.Config{URL: server.URL},
	)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pool.Estimates(t.Context(), questions())
	want := []*job.Estimate{{EditKind: questions()[0].EditKind,
		Points: []job.EstimatePoint{{Length: 1, Takes: 40}, {Length: 300, Takes: 24 * 60 * 60}}}, nil}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	edits := []engineserver.EstimatedEdit{
		{Model: "gen-2.5", Kind: catalog.Edit, Reference: true, Width: 1280, Height: 720, FPS: 20, Lengths: []float64{1, 300}},
		{Model: "gen-image-2", Kind: catalog.Image, Width: 1280, Height: 704, Lengths: []float64{0}},
	}
	if !reflect.DeepEqual(asked.Edits, edits) {
		t.Errorf("requested %+v", asked.Edits)
	}
}

func TestInvalidEstimatesAreErrors(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
	}{
		{http.StatusNotFound, ""}, // an older engine server without estimates
		{http.StatusOK, "<html>"},
		{http.StatusOK, `{"estimates":[]}`},
		{http.StatusOK, `{"estimates":[{"seconds":[1]},null]}`},
		{http.StatusOK, `{"estimates":[{"seconds":[1,-2]},null]}`},
		{http.StatusOK, `{"estimates":[null,null` + strings.Repeat(" ", 2<<20) + `]}`},
	} {
		if got, err := newEngine(t, scripted(t, c.status, c.body, closes), await.Max).Estimates(
			t.Context(), questions()); err == nil {
			t.Errorf("%d %.60s: got %v", c.status, c.body, got)
		}
	}
}
