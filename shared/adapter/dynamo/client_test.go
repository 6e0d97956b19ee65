package dynamo_test

import (
	"net/http"
	"testing"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/awsclient"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

func TestEveryCallHasDeadline(t *testing.T) {
	cloud := local.Cloud(t)
	config, seen := awstest.ConfigFor(cloud.URL), false
	config.HTTPClient = &http.Client{Transport: roundTrip(func(request *http.Request) (*http.Response, error) {
		deadline, limited := request.Context().Deadline()
		if left := time.Until(deadline); !limited || left > awsclient.CallTime {
			t.Errorf("the call has %v left, with a deadline: %v", left, limited)
		}
		seen = true
		return http.DefaultTransport.RoundTrip(request)
	})}
	workers := dynamo.NewWorkers(dynamo.NewClient(config), cloud.MakeTable(t, "jobs"), time.Now)
	conformance.OK(t, workers.Beat(t.Context(), job.VideoLane))
	conformance.Same(t, "calls were seen", seen, true)
}

type roundTrip func(request *http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
