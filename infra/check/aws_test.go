package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/aws/smithy-go/encoding/cbor"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/testkit/awstest"
)

// stubAccount responds as documented for SQS, DynamoDB and CloudWatch.
type stubAccount struct {
	// messages maps queues to their attributes. alarms maps alarms to their states.
	messages map[string]map[string]string
	alarms   map[string]string
	// endless is the name of a table without a TTL.
	endless string
}

func (a stubAccount) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var call struct{ QueueName, QueueUrl, TableName string }
	_ = json.Unmarshal(body, &call) // fails for CloudWatch, which sends CBOR
	var answer any
	switch target := r.Header.Get("X-Amz-Target"); {
	case path.Base(r.URL.Path) == "DescribeAlarms":
		list := cbor.List{}
		for name, state := range a.alarms {
			list = append(list, cbor.Map{"AlarmName": cbor.String("cutroom-test-" + name), "StateValue": cbor.String(state)})
		}
		w.Header().Set("Content-Type", "application/cbor")
		w.Header().Set("smithy-protocol", "rpc-v2-cbor")
		_, _ = w.Write(cbor.Encode(cbor.Map{"MetricAlarms": list}))
		return
	case strings.HasSuffix(target, ".GetQueueUrl"):
		answer = map[string]any{"QueueUrl": "http://" + r.Host + "/1/" + call.QueueName}
	case strings.HasSuffix(target, ".GetQueueAttributes"):
		answer = map[string]any{"Attributes": a.messages[path.Base(call.QueueUrl)]}
	case strings.HasSuffix(target, ".DescribeTimeToLive"):
		set := map[string]string{"TimeToLiveStatus": "DISABLED"}
		for _, table := range dynamo.Tables() {
			if dynamo.TableName("test", table.Name) == call.TableName && call.TableName != a.endless {
				set = map[string]string{"TimeToLiveStatus": "ENABLED", "AttributeName": table.TTL}
			}
		}
		answer = map[string]any{"TimeToLiveDescription": set}
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(w).Encode(answer) // fails if the client has disconnected
}

// All faults of queues, tables and alarms are reported. Visible, delayed and in-flight messages all count.
func TestStateFaultsAreReported(t *testing.T) {
	quiet := func() map[string]string {
		alarms := map[string]string{}
		for _, name := range alarmNames {
			alarms[name] = "OK"
		}
		return alarms
	}
	missing, idle, loud := quiet(), quiet(), quiet()
	delete(missing, "media-errors")
	delete(idle, "image-refusals")
	loud["image-refusals"] = "ALARM"
	for name, c := range map[string]struct {
		account stubAccount
		want    string
		stage   deploy
	}{
		"in order":                   {account: stubAccount{alarms: quiet()}},
		"no alarms":                  {},
		"no worker":                  {account: stubAccount{alarms: idle}, stage: deploy{noWorker: true}},
		"a missing alarm of workers": {account: stubAccount{alarms: idle}, want: "the alarm image-refusals is missing"},
		"dead letters": {account: stubAccount{alarms: quiet(), messages: map[string]map[string]string{
			"cutroom-test-video-dead-letters": {"ApproximateNumberOfMessagesNotVisible": "1"},
			"cutroom-test-webhook-dead-letters": {"ApproximateNumberOfMessages": "2", "ApproximateNumberOfMessagesDelayed": "3",
				"VisibilityTimeout": "30"},
		}}, want: "video-dead-letters has 1 messages\nwebhook-dead-letters has 5 messages"},
		"an endless table": {account: stubAccount{alarms: quiet(), endless: "cutroom-test-jobs"}, want: "TTL is not enabled on the attribute ttl of table cutroom-test-jobs"},
		"a missing alarm":  {account: stubAccount{alarms: missing}, want: "the alarm media-errors is missing"},
		"an alarm": {account: stubAccount{alarms: loud},
			want: "the alarm image-refusals fired: see docs/runbook.md#image-refusals"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.account)
			defer server.Close()
			c.stage.stage = "test"
			v := &visit{cloud: newCloud(awstest.ConfigFor(server.URL), c.stage)}
			_, err := checkState(t.Context(), v)
			if got := fmt.Sprint(err); got != c.want && (err != nil || c.want != "") {
				t.Errorf("it reports %q, want %q", got, c.want)
			}
		})
	}
}
