package cloudwatch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/adapter/cloudwatch"
	"cutroom/shared/domain/job"
	"cutroom/shared/service/worker"
)

func TestRunsAreWrittenAsMetrics(t *testing.T) {
	var out bytes.Buffer
	w := cloudwatch.New(&out, func() time.Time { return time.UnixMilli(1_770_000_000_123) },
		slog.New(slog.DiscardHandler)).Worker()
	for _, test := range []struct {
		name string
		run  worker.Run
		want string
	}{
		{"that was completed", worker.Run{
			Lane: job.VideoLane, Model: "gen-2.5", Number: 1, Outcome: worker.Completed, Waited: 2 * time.Second,
			Took: 42 * time.Second,
			Stages: map[string]time.Duration{"fetch": 300 * time.Millisecond, "engine": 40 * time.Second,
				"engine.denoise": 38 * time.Second, "store": time.Second},
		}, `{"Code":"","Engine":40000,"FailedRuns":0,"Fetch":300,"Lane":"video","Model":"gen-2.5","Outcome":"completed",` +
			`"QueueWait":2000,"Run":1,"Runs":1,` +
			`"Stages":{"engine":40000,"engine.denoise":38000,"fetch":300,"store":1000},"Store":1000,"Took":42000,` +
			`"_aws":{"CloudWatchMetrics":[{"Dimensions":[["Lane"]],"Metrics":[` +
			`{"Name":"Runs","Unit":"Count"},{"Name":"FailedRuns","Unit":"Count"},{"Name":"QueueWait","Unit":"Milliseconds"},` +
			`{"Name":"Fetch","Unit":"Milliseconds"},` +
			`{"Name":"Engine","Unit":"Milliseconds"},{"Name":"Store","Unit":"Milliseconds"}],"Namespace":"Cutroom"}],"Timestamp":1770000000123}}`},
		{"that failed again", worker.Run{
			Lane: job.ImageLane, Model: "gen-image-2", Number: 3, Outcome: worker.Failed, Code: job.EngineError,
			Waited: time.Minute, Took: time.Second,
		}, `{"Code":"engine_error","FailedRuns":1,"Lane":"image","Model":"gen-image-2","Outcome":"failed","Run":3,"Runs":1,` +
			`"Stages":{},"Took":1000,` +
			`"_aws":{"CloudWatchMetrics":[{"Dimensions":[["Lane"]],"Metrics":[{"Name":"Runs","Unit":"Count"},{"Name":"FailedRuns","Unit":"Count"}],"Namespace":"Cutroom"}],"Timestamp":1770000000123}}`},
	} {
		out.Reset()
		w.Ran(test.run)
		if got := strings.TrimSuffix(out.String(), "\n"); got != test.want {
			t.Errorf("a run %s:\ngot  %s\nwant %s", test.name, got, test.want)
		}
	}
}

type ended struct {
	bytes.Buffer
	left int
	end  context.CancelFunc
}

func (e *ended) Write(p []byte) (int, error) {
	if e.left--; e.left == 0 {
		e.end()
	}
	return e.Buffer.Write(p)
}

// The busy fraction covers the time since the previous log line.
func TestBusyFractionCoversInterval(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	out := &ended{left: 2, end: end}
	var mu sync.Mutex
	now, busy := time.UnixMilli(1_770_000_000_000), time.Hour
	w := cloudwatch.New(out, func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second) // each call advances the clock; the second line makes two calls
		return now
	}, slog.New(slog.DiscardHandler)).Worker()
	w.Watch(ctx, time.Millisecond, func() []worker.Load {
		mu.Lock()
		defer mu.Unlock()
		busy += time.Second
		return []worker.Load{{Lane: job.VideoLane, Slots: 2, Busy: 1, BusyTime: busy}}
	})
	var shares []float64
	for line := range strings.Lines(out.String()) {
		var read struct{ BusyShare float64 }
		if err := json.Unmarshal([]byte(line), &read); err != nil {
			t.Fatal(err)
		}
		shares = append(shares, read.BusyShare)
	}
	// One of two slots was busy for one second, over intervals of one and two seconds.
	if len(shares) < 2 || shares[0] != 50 || shares[1] != 25 {
		t.Errorf("the busy fractions are %v, want 50 and 25", shares)
	}
}
