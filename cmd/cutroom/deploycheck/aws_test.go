package deploycheck_test

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go/encoding/cbor"

	"cutroom/cmd/cutroom/deploycheck"
	"cutroom/shared/testkit/awstest"
)

// alarmService answers as CloudWatch is documented to, for one alarm with an action. It says
// of the alarm's history what it is told to, the newest first.
func alarmService(t *testing.T, history ...string) (url string, fired *[]byte) {
	t.Helper()
	fired = new([]byte)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		answer := cbor.Map{}
		switch path.Base(r.URL.Path) {
		case "SetAlarmState":
			*fired = body
		case "DescribeAlarms":
			answer["MetricAlarms"] = cbor.List{cbor.Map{
				"AlarmName":  cbor.String("cutroom-test-webhook-dead-letters"),
				"StateValue": cbor.String("OK"), "AlarmActions": cbor.List{cbor.String("arn:aws:sns:eu-central-1:1:alarms")},
			}}
		case "DescribeAlarmHistory":
			items := cbor.List{}
			for _, summary := range history {
				items = append(items, cbor.Map{"HistorySummary": cbor.String(summary)})
			}
			answer["AlarmHistoryItems"] = items
		default:
			t.Errorf("it is asked for %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/cbor")
		w.Header().Set("smithy-protocol", "rpc-v2-cbor")
		_, _ = w.Write(cbor.Encode(answer)) // fails if the caller has gone
	}))
	t.Cleanup(server.Close)
	return server.URL, fired
}

// queueService answers as SQS is documented to: every queue is there, and of its messages it
// tells the counts that are asked for.
func queueService(t *testing.T, counts map[string]map[string]string) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct {
			QueueName, QueueUrl string
			AttributeNames      []string
		}
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
			t.Error(err)
		}
		answer := map[string]any{"QueueUrl": "http://" + r.Host + "/1/" + call.QueueName}
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetQueueAttributes") {
			attributes := map[string]string{}
			for _, name := range call.AttributeNames {
				attributes[name] = cmp.Or(counts[path.Base(call.QueueUrl)][name], "0")
			}
			answer = map[string]any{"Attributes": attributes}
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_ = json.NewEncoder(w).Encode(answer) // fails if the caller has gone
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A message that was given up on counts wherever it is: one that its function cannot take is
// in flight nearly always.
func TestDeadLettersInFlight(t *testing.T) {
	cloud := deploycheck.NewCloud(awstest.ConfigFor(queueService(t, map[string]map[string]string{
		"cutroom-test-video-dead-letters":   {"ApproximateNumberOfMessagesNotVisible": "1"},
		"cutroom-test-webhook-dead-letters": {"ApproximateNumberOfMessages": "2", "ApproximateNumberOfMessagesDelayed": "3"},
	})), deploycheck.Deploy{Stage: "test"})
	got, err := cloud.DeadLetters(t.Context())
	want := map[string]int{"video-dead-letters": 1, "image-dead-letters": 0, "webhook-dead-letters": 5}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("the queues have %v, %v, want %v", got, err, want)
	}
}

func TestAlarmStories(t *testing.T) {
	const quiet, told = "Alarm updated from ALARM to OK", "Successfully executed action arn:aws:sns:eu-central-1:1:alarms"
	const loud, untold = "Alarm updated from OK to ALARM", "Failed to execute action arn:aws:sns:eu-central-1:1:alarms"
	for name, c := range map[string]struct {
		history []string
		want    deploycheck.AlarmStory
	}{
		"nothing yet":       {nil, deploycheck.AlarmStory{Actions: 1}},
		"it is in alarm":    {[]string{told, loud}, deploycheck.AlarmStory{Actions: 1, Done: 1}},
		"it is quiet again": {[]string{quiet, told, loud}, deploycheck.AlarmStory{Recovered: true, Actions: 1, Done: 1}},
		"nobody was told": {[]string{quiet, untold, loud},
			deploycheck.AlarmStory{Recovered: true, Actions: 1, Failure: untold}},
		"it was quiet before": {[]string{quiet}, deploycheck.AlarmStory{Actions: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			url, fired := alarmService(t, c.history...)
			cloud := deploycheck.NewCloud(awstest.ConfigFor(url), deploycheck.Deploy{Stage: "test"})
			if err := cloud.Fire(t.Context(), "webhook-dead-letters"); err != nil ||
				!strings.Contains(string(*fired), "cutroom-test-webhook-dead-letters") ||
				!strings.Contains(string(*fired), "ALARM") {
				t.Errorf("it was set off by %q, %v", *fired, err)
			}
			story, err := cloud.Story(t.Context(), "webhook-dead-letters", time.Now())
			if err != nil || story != c.want {
				t.Errorf("its story is %+v, %v, want %+v", story, err, c.want)
			}
		})
	}
}
