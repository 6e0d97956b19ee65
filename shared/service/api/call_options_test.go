package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/job"
)

func TestInvalidCallOptionsAreRejected(t *testing.T) {
	w := newWorld(t, setup{})
	for sent, message := range map[string]string{
		"start_within=0":     "Input should be greater than or equal to 1",
		"start_within=86401": "Input should be less than or equal to 86400",
		"start_within=soon":  "Input should be a valid integer, unable to parse string as an integer",
		"result_ttl=59":      "Input should be greater than or equal to 60",
		"result_ttl=86401":   "Input should be less than or equal to 86400",
		"priority=high":      "Input should be 'normal' or 'low'",
		"priority=low":       "Value error, This deployment has only normal priority.",
		"webhook_events=end": "Input should be 'completed,failed', 'completed' or 'failed'",
	} {
		name, value, _ := strings.Cut(sent, "=")
		found := w.problems(w.post("gen-pro-t2v", studio, text("prompt", "x"), text(name, value)))
		if len(found) != 1 || strings.Join(found[0].Loc, ".") != "body."+name || found[0].Msg != message {
			t.Errorf("%s: %+v", sent, found)
		}
	}
	w.nothingStays()
}

// The failure is visible even if no process is running to record it, and costs nothing.
func TestJobThatDoesNotStartInTimeFails(t *testing.T) {
	w := newWorld(t, setup{})
	submit := func(seconds string) string {
		return w.accepted(w.post("gen-pro-t2v", studio, text("prompt", "x"), text("start_within", seconds)))
	}
	late, started, patient := submit("30"), submit("30"), submit("3600")
	w.start(started)
	w.later.Store(int64(30 * time.Second))
	show := func(id string) (body struct {
		Status  string
		Options map[string]any
		Error   *job.Failure
	}) {
		if err := json.Unmarshal([]byte(w.get("/v1/jobs/"+id, studio).body), &body); err != nil {
			t.Fatal(err)
		}
		return body
	}
	j := show(late)
	if j.Status != "failed" || j.Error == nil || *j.Error != job.StartTimeoutFailure() || j.Options["start_within"] != 30.0 {
		t.Errorf("the late job: %+v", j)
	}
	if record := w.record(late); record.CompletedAt.Sub(record.CreatedAt) != 30*time.Second {
		t.Errorf("the late job ended %v after its creation, want 30 s", record.CompletedAt.Sub(record.CreatedAt))
	}
	if got := show(started); got.Status != "processing" {
		t.Errorf("the started job: %+v", got)
	}
	w.later.Store(int64(10 * time.Minute))
	if j := show(patient); j.Error == nil || *j.Error != job.TimeoutFailure() {
		t.Errorf("the patient job: %+v", j)
	}
}

func TestResultTTLEndsAllReads(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.accepted(w.post("gen-pro-t2v", studio, text("prompt", "x"), text("result_ttl", "60"), text("webhook_events", "failed")))
	w.start(id)
	w.complete(id, "the result", "video/mp4")
	var shown struct {
		Result struct {
			ExpiresAt time.Time `json:"expires_at"`
		}
	}
	if err := json.Unmarshal([]byte(w.get("/v1/jobs/"+id, studio).body), &shown); err != nil {
		t.Fatal(err)
	}
	ended := w.record(id).CompletedAt
	if lifetime := shown.Result.ExpiresAt.Sub(ended); lifetime != time.Minute {
		t.Errorf("the result expires after %v, want 1 min", lifetime)
	}
	var share struct {
		URL     string
		Expires time.Time `json:"expires_at"`
	}
	if err := json.Unmarshal([]byte(w.request("POST", "/v1/jobs/"+id+"/shares", studio, nil).body), &share); err != nil {
		t.Fatal(err)
	}
	if share.Expires.After(shown.Result.ExpiresAt) {
		t.Errorf("the link expires at %v, after the result", share.Expires)
	}
	if a := w.get("/v1/jobs/"+id+"/content", studio); a.status != 200 {
		t.Errorf("before the end: %d %s", a.status, a.body)
	}
	w.later.Store(int64(61 * time.Second))
	for _, path := range []string{"/content", "/thumbnail", "/thumbnail?size=poster"} {
		if a := w.get("/v1/jobs/"+id+path, studio); a.status != 404 || a.detail() != job.ErrResultExpired.Message {
			t.Errorf("%s after the end: %d %s", path, a.status, a.body)
		}
	}
}
