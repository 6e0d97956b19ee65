package deploycheck_test

import (
	"io"
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
