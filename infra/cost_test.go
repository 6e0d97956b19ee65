package main

import "testing"

// List prices in US East (N. Virginia) in November 2026, in dollars.
const (
	alarmMetricMonth = 0.10
	secretMonth      = 0.40
	queueRequest     = 0.40 / 1e6
	fairQueueRequest = 0.10 / 1e6
	functionRequest  = 0.20 / 1e6
	gigabyteSecond   = 13.3334 / 1e6
	readUnit         = 0.125 / 1e6
	logByte          = 0.50 / 1e9
)

const hoursOfMonth = 730

// pollsOfQueue is the number of polls per month with which Lambda watches a queue: five pollers
// wait 20 seconds per poll, even while the queue is empty.
const pollsOfQueue = 5 * 3 * 60 * hoursOfMonth

// schedules maps schedules to the monthly cost of everything they run.
var schedules = map[string]float64{
	// The scale function uses 1 read unit, 2 requests to fair queues, 5 ms with 256 MB, 349 bytes of log.
	"rate(1 minute)": 60 * hoursOfMonth *
		(functionRequest + 0.005*0.25*gigabyteSecond + readUnit + 2*(queueRequest+fairQueueRequest) + 349*logByte),
	// The steps function uses 3 read units, 30 ms with 1 GB.
	"rate(5 minutes)": 12 * hoursOfMonth * (functionRequest + 0.03*gigabyteSecond + 3*readUnit),
}

// docs/cost.md shows the result.
func TestIdleMonthCostsLessThanThreeDollars(t *testing.T) {
	made := synthesize(t, contextOfPreviews)
	dollars := 0.0
	for name, r := range made.resources {
		switch r.Type {
		case "AWS::CloudWatch::Alarm":
			dollars += float64(metricsOf(r)) * alarmMetricMonth
		case "AWS::SecretsManager::Secret":
			dollars += secretMonth
		case "AWS::Lambda::EventSourceMapping":
			// Polling a table's stream is free.
			source, _ := r.Properties["EventSourceArn"].(map[string]any)
			if att, _ := source["Fn::GetAtt"].([]any); len(att) > 0 && made.resources[att[0].(string)].Type == "AWS::SQS::Queue" {
				dollars += pollsOfQueue * queueRequest
			}
		case "AWS::Events::Rule":
			if schedule, ok := r.Properties["ScheduleExpression"].(string); ok {
				price, known := schedules[schedule]
				if !known {
					t.Errorf("%s runs at %s: add its monthly cost to schedules", name, schedule)
				}
				dollars += price
			}
		case "AWS::ECS::Service":
			if n := r.Properties["DesiredCount"]; n != nil && n != 0.0 {
				t.Errorf("%s runs %v tasks while idle, want 0", name, n)
			}
		case "AWS::EC2::NatGateway", "AWS::EC2::EIP", "AWS::KMS::Key", "AWS::ElasticLoadBalancingV2::LoadBalancer":
			t.Errorf("%s is billed by time, and this test has no price for %s", name, r.Type)
		}
	}
	if dollars >= 3 || dollars < 1 {
		t.Errorf("an idle month costs $%.2f, want $1 to $3", dollars)
	}
	t.Logf("an idle month costs $%.2f", dollars)
}

func metricsOf(alarm resource) int {
	n := 0
	list, _ := alarm.Properties["Metrics"].([]any)
	for _, m := range list {
		if _, ok := m.(map[string]any)["MetricStat"]; ok {
			n++
		}
	}
	return max(1, n)
}
