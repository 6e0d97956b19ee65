package api_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/job"
)

// priced returns a catalog with prices: per second for clips and text-to-video, and per edit for images.
func priced(t *testing.T) []byte {
	t.Helper()
	source, err := os.ReadFile("../../domain/catalog/catalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(source), "\nlimits:", "\ncurrency: EUR\nlimits:", 1)
	for _, price := range []struct{ kind, text string }{
		{"clip", "{per_second: 0.05}"}, {"image", "{per_edit: 0.0213, sizes: {480p: 0.01}}"}, {"text-to-video", "{per_second: 0.1}"},
	} {
		text = strings.Replace(text, "kind: "+price.kind+"\n", "kind: "+price.kind+"\n    price: "+price.text+"\n", 1)
	}
	return []byte(text)
}

type cost struct {
	Amount   float64
	Currency string
}

func (w *world) costOf(id string) *cost {
	w.t.Helper()
	var body struct {
		Cost *cost `json:"estimated_cost"`
	}
	a := w.get("/v1/jobs/"+id, studio)
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status != 200 {
		w.t.Fatalf("%d %s", a.status, a.body)
	}
	return body.Cost
}

// Estimates use the input's length. The final cost uses the result's length. Failed jobs and unchanged results are
// free.
func TestJobShowsItsCost(t *testing.T) {
	w := newWorld(t, setup{catalog: priced(t)})
	id := w.accepted(w.post("gen-clip", studio, upload("data", clip(t)), text("prompt", "x")))
	want := float64(w.record(id).Request.Length.Milliseconds()) * 0.05 / 1000
	if got := w.costOf(id); got == nil || want == 0 || got.Amount != want || got.Currency != "EUR" {
		t.Errorf("cost of a clip of %v: %+v, want %v", w.record(id).Request.Length, got, want)
	}
	w.start(id)
	result := job.Result{Blob: job.ResultBlob(id, "nonce"), MIME: "video/mp4", Size: 1, SHA256: "x", Duration: 4960 * time.Millisecond}
	if err := w.records.Complete(t.Context(), id, "nonce", result, w.now()); err != nil {
		t.Fatal(err)
	}
	if got := w.costOf(id); got == nil || got.Amount != 0.248 {
		t.Errorf("of 4.96 seconds: %+v", got)
	}
	if a := w.get("/v1/jobs/"+id, studio); !strings.Contains(a.body, `"cost":{"amount":0.248,"currency":"EUR"}`) {
		t.Errorf("the bill: %s", a.body)
	}
	same := w.accepted(w.post("gen-clip", studio, upload("data", clip(t)), text("prompt", "x")))
	w.start(same)
	result.Blob, result.Understood = job.ResultBlob(same, "nonce"), []string{}
	if err := w.records.Complete(t.Context(), same, "nonce", result, w.now()); err != nil {
		t.Fatal(err)
	}
	if a := w.get("/v1/jobs/"+same, studio); !strings.Contains(a.body, `"cost":{"amount":0,"currency":"EUR"}`) ||
		!strings.Contains(a.body, `"changed":false`) || job.Billed(w.record(same)).Cost != 0 {
		t.Errorf("of an unchanged result: %s", a.body)
	}
	// The length of a truncated clip is unknown.
	unknown := w.accepted(w.post("gen-clip", studio, upload("data", clip(t)[:600]), text("prompt", "x")))
	if got := w.costOf(unknown); w.record(unknown).Request.Length == 0 && got != nil {
		t.Errorf("cost of a clip of unknown length: %+v", got)
	}
	image := w.accepted(w.post("gen-image-2", studio, upload("data", picture(t)), text("prompt", "x")))
	if got := w.costOf(image); got == nil || got.Amount != 0.0213 {
		t.Errorf("cost of an image: %+v", got)
	}
	if a := w.get("/v1/jobs/"+image, studio); strings.Contains(a.body, `"cost"`) {
		t.Errorf("a bill before the end: %s", a.body)
	}
	small := w.accepted(w.post("gen-image-2", studio, upload("data", picture(t)), text("prompt", "x"), text("resolution", "480p")))
	if got := w.costOf(small); got == nil || got.Amount != 0.01 {
		t.Errorf("cost of a smaller image: %+v", got)
	}
	if a := w.get("/v1/jobs?model=gen-image-2", studio); !strings.Contains(a.body, `"estimated_cost":{"amount":0.0213,"currency":"EUR"}`) {
		t.Errorf("the list: %s", a.body)
	}
	w.start(image)
	w.fail(image, job.Failure{Code: job.EngineError, Message: "x"})
	if got := w.costOf(image); got != nil {
		t.Errorf("cost of a failed job: %+v", got)
	}
	free := w.accepted(w.post("gen-2.5", studio, upload("data", clip(t))))
	if got := w.costOf(free); got != nil || w.record(free).Request.Price != nil {
		t.Errorf("cost for a model without a price: %+v", got)
	}
	// Price changes do not affect existing jobs.
	if stored := w.record(image).Request.Price; stored == nil || stored.Millionths != 21300 {
		t.Errorf("the job's price is now %+v", stored)
	}
}

func TestCostIsKnownInAdvance(t *testing.T) {
	w := newWorld(t, setup{catalog: priced(t)})
	for sent, want := range map[string]string{
		`{"model":"gen-clip","seconds":4.96}`:         `"estimated_cost":{"amount":0.248,"currency":"EUR"}`,
		`{"model":"gen-clip-latest","seconds":86400}`: `"estimated_cost":{"amount":4320,"currency":"EUR"}`,
		`{"model":"gen-clip"}`:                        "",
		`{"model":"gen-clip","seconds":null}`:         "",
		`{"model":"gen-clip","seconds":0}`:            "",
		`{"model":"gen-2.5","seconds":5}`:             "",
		`{"model":"gen-image-2"}`:                     `"estimated_cost":{"amount":0.0213,"currency":"EUR"}`,
		`{"model":"gen-image-2","resolution":"480p"}`: `"estimated_cost":{"amount":0.01,"currency":"EUR"}`,
		`{"model":"gen-pro-t2v","prompt":"the sea"}`:  `"estimated_cost":{"amount":0.5,"currency":"EUR"}`,
		`{"model":"gen-pro-t2v","seconds":100}`:       `"estimated_cost":{"amount":0.5,"currency":"EUR"}`,
		`{"model":"gen-clip","seconds":1e-9}`:         `"estimated_cost":{"amount":0,"currency":"EUR"}`,
	} {
		a := w.request("POST", "/v1/understand", "", strings.NewReader(sent), "Content-Type: application/json")
		if a.status != 200 || want != "" && !strings.Contains(a.body, want) || want == "" && strings.Contains(a.body, "cost") {
			t.Errorf("%s: %d %s, want %s", sent, a.status, a.body, want)
		}
	}
	for _, seconds := range []string{`-1`, `86401`, `1e999`, `"5"`, `true`, `[]`, `{}`} {
		a := w.request("POST", "/v1/understand", "", strings.NewReader(`{"model":"gen-clip","seconds":`+seconds+`}`),
			"Content-Type: application/json")
		if a.status != 422 || !json.Valid([]byte(a.body)) || !strings.Contains(a.body, `"loc":["body","seconds"]`) {
			t.Errorf("%s: %d %s", seconds, a.status, a.body)
		}
	}
	if a := w.get("/v1/engine", ""); !strings.Contains(a.body, `"price":{"amount":0.05,"per":"second","currency":"EUR"}`) ||
		strings.Count(a.body, `"price"`) != 3 {
		t.Errorf("the engine: %s", a.body)
	}
	if a := w.get("/openapi.json", ""); !strings.Contains(a.body, `"price":{"amount":0.0213,"per":"edit","currency":"EUR","sizes":{"480p":0.01}}`) {
		t.Error("the OpenAPI document has no prices")
	}
}
