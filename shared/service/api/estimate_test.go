package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/mediatest"
)

// publish publishes an estimate. An edit takes 100 seconds, plus the given number of seconds for each second of the
// clip.
func (w *world) publish(kind job.EditKind, each float64) {
	w.t.Helper()
	estimates := job.Estimates{{EditKind: kind, Points: []job.EstimatePoint{
		{Length: 1, Takes: 100 + each}, {Length: 300, Takes: 100 + 300*each},
	}}}
	if err := w.estimates.PublishEstimates(w.t.Context(), estimates, w.now()); err != nil {
		w.t.Fatal(err)
	}
	w.pass(time.Minute) // after a minute, the service reads the estimates again
}

func (w *world) estimated(id string) (seconds int) {
	w.t.Helper()
	var body struct {
		Seconds int `json:"estimated_seconds"`
	}
	if err := json.Unmarshal([]byte(w.get("/v1/jobs/"+id, studio).body), &body); err != nil {
		w.t.Fatal(err)
	}
	return body.Seconds
}

func TestJobShowsItsEstimate(t *testing.T) {
	w := newWorld(t, setup{})
	plain := job.EditKind{Model: "gen-2.5", Resolution: "720p"}
	unknown := w.accepted(w.post("gen-2.5", studio, upload("data", clip(t))))
	w.publish(plain, 10)
	known := w.accepted(w.post("gen-latest", studio, upload("data", clip(t))))
	referred := w.accepted(w.post("gen-2.5", studio, upload("data", clip(t)), upload("reference_image", picture(t))))
	if got := w.estimated(known); got < 101 || got > 130 {
		t.Errorf("the estimate for a short clip is %d s", got)
	}
	for _, id := range []string{unknown, referred} {
		if got := w.estimated(id); got != 0 {
			t.Errorf("the estimate of %s is %d s, want none", id, got)
		}
	}
	w.publish(job.EditKind{Model: "gen-pro-t2v", Resolution: "720p"}, 10)
	if got := w.estimated(w.submit(studio)); got != 150 {
		t.Errorf("the estimate for five seconds from text is %d s", got)
	}
	w.publish(job.EditKind{Model: "gen-image-2", Resolution: "480p"}, 0)
	image := w.accepted(w.post("gen-image-2", studio, upload("data", picture(t)), text("prompt", "x"),
		text("resolution", "480p")))
	if got := w.estimated(image); got != 100 {
		t.Errorf("the estimate for an image is %d s", got)
	}
}

// See docs/contract/jobs.md#admission.
func TestClipThatTakesTooLongIsRejected(t *testing.T) {
	w := newWorld(t, setup{})
	kind := job.EditKind{Model: "gen-2.5", Resolution: "720p"}
	w.publish(kind, 400) // 500 s for a one-second clip, 900 s for two seconds
	twoSeconds := content(t, mediatest.Video{Seconds: 2}.Make(t))
	a := w.post("gen-2.5", studio, upload("data", twoSeconds))
	var body struct {
		Detail []struct {
			Location []string `json:"loc"`
			Message  string   `json:"msg"`
		}
	}
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status != 422 || len(body.Detail) != 1 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	const says = "Value error, The edit would take about 15 minutes, but a job may take at most 10 minutes. " +
		"The longest video that would finish in time is 1 s long."
	if one := body.Detail[0]; strings.Join(one.Location, ".") != "body.data" || one.Message != says {
		t.Errorf("got %q at %v", one.Message, one.Location)
	}
	w.nothingStays()
	w.accepted(w.post("gen-2.1", studio, upload("data", twoSeconds)))
	w.publish(kind, 10000)
	if a := w.post("gen-2.5", studio, upload("data", twoSeconds)); a.status != 422 || strings.Contains(a.body, "longest") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A retry gets the accepted job. A rejected request can be sent again with the same key.
func TestRetryIgnoresTheEstimate(t *testing.T) {
	w := newWorld(t, setup{})
	kind := job.EditKind{Model: "gen-2.5", Resolution: "720p"}
	form, contentType := multiform(upload("data", content(t, mediatest.Video{Seconds: 2}.Make(t))))
	post := func(key string) answer {
		return w.request("POST", "/v1/jobs/gen-2.5", studio, strings.NewReader(form), "Content-Type: "+contentType,
			"Idempotency-Key: "+key)
	}
	id := w.accepted(post("early"))
	w.publish(kind, 10000)
	if again := w.accepted(post("early")); again != id {
		t.Errorf("the retry got job %s, want %s", again, id)
	}
	if a := post("late"); a.status != 422 {
		t.Errorf("%d %s", a.status, a.body)
	}
	w.publish(kind, 1)
	w.accepted(post("late"))
}
