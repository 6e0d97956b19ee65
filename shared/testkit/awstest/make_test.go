package awstest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"cutroom/shared/testkit/awstest"
)

// stopped is what a Fatalf of a recorder panics with.
type stopped string

// recorder is a test whose failure is recorded and does not end the test that uses it.
type recorder struct{ *testing.T }

func (recorder) Fatalf(format string, args ...any) { panic(stopped(fmt.Sprintf(format, args...))) }

// failure returns the message with which a function fails its test; "" if it does not.
func failure(t *testing.T, run func(awstest.T)) (message string) {
	t.Helper()
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case stopped:
			message = string(reason)
		default:
			panic(reason)
		}
	}()
	run(recorder{t})
	return ""
}

func TestMakeQueueWithoutAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		// empty is the number of answers without a URL before those with one.
		empty int32
		want  string
	}{
		"one answer without a URL": {1, ""},
		"no answer with a URL":     {1000, "make the queue test1-queue: the local AWS answered 3 times without its URL"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/x-amz-json-1.0")
				if calls.Add(1) <= c.empty {
					fmt.Fprint(w, `{}`)
					return
				}
				fmt.Fprint(w, `{"QueueUrl": "http://localhost/queue"}`)
			}))
			defer server.Close()
			cloud := &awstest.Cloud{URL: server.URL}
			var queue awstest.Queue
			got := failure(t, func(t awstest.T) { queue = cloud.MakeQueue(t, 10) })
			if got != c.want {
				t.Errorf("it failed with %q, want %q", got, c.want)
			}
			if c.want == "" && queue.URL != "http://localhost/queue" {
				t.Errorf("the queue is %+v", queue)
			}
		})
	}
}
