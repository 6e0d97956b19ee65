package main

import (
	"fmt"
	"testing"
)

// queued is a message in a queue. Its times are in minutes.
type queued struct{ sent, taken, done int }

// point contains the values that SQS reports for one minute.
type point struct{ visible, age float64 }

// series returns the values that SQS reports for each minute: nil while the queue is empty. The age
// includes messages in progress.
func series(messages []queued, minutes int) []*point {
	points := make([]*point, minutes)
	for minute := range points {
		for _, m := range messages {
			if minute < m.sent || minute >= m.done {
				continue
			}
			if points[minute] == nil {
				points[minute] = &point{}
			}
			p := points[minute]
			p.age = max(p.age, float64(60*(minute-m.sent)))
			if minute < m.taken {
				p.visible++
			}
		}
	}
	return points
}

// rises returns the first minute at which an alarm on IF(visible > 0, age, 0) is in ALARM, or -1.
// Every minute, CloudWatch evaluates the window that ends at that minute.
func rises(points []*point, window int, above float64) int {
	for minute := range points {
		visible, age, found := 0.0, 0.0, false
		for _, p := range points[max(0, minute-window+1) : minute+1] {
			if p == nil {
				continue
			}
			if !found || p.visible < visible {
				visible = p.visible
			}
			age, found = max(age, p.age), true
		}
		if found && visible > 0 && age > above {
			return minute
		}
	}
	return -1
}

// The queue alarm fires if a job waits too long, but not if a job runs long.
func TestLongEditRaisesNoAlarm(t *testing.T) {
	drip := []queued{}
	for i := range 30 {
		// Two workers take 4 minutes per message, and at every second point a job has been waiting for less than a
		// minute.
		drip = append(drip, queued{2 * i, 2*i + 1, 2*i + 5})
	}
	tests := []struct {
		name     string
		messages []queued
		// video and image are the minutes at which the alarms fire; -1 means never.
		video, image int
	}{
		{"nothing", nil, -1, -1},
		{"an edit of 9 minutes alone", []queued{{1, 1, 10}}, -1, -1},
		{"an edit of 9 minutes, taken within a minute", []queued{{1, 2, 11}}, -1, -1},
		{"edits of 9 minutes, one after another", []queued{{0, 0, 9}, {9, 9, 18}, {18, 18, 27}}, -1, -1},
		{"a job beside a long edit, taken within a minute", []queued{{0, 0, 9}, {6, 7, 8}}, -1, -1},
		{"jobs that drip in and are taken immediately", drip, -1, -1},
		{"a job that waits for more than 3 minutes", []queued{{1, 6, 7}}, 5, 3},
		{"a job that nobody takes", []queued{{1, 60, 60}}, 5, 3},
		{"a job that waits behind a long edit", []queued{{0, 0, 9}, {4, 9, 12}}, 6, 5},
	}
	made := synthesize(t, contextOfPreviews)
	for _, lane := range []struct {
		name   string
		window int
		above  float64
	}{{"video", 3, 180}, {"image", 2, 60}} {
		alarm := alarmOf(t, made, lane.name+"-queue-age")
		checkWaiting(t, alarm, lane.window, lane.above)
		for _, test := range tests {
			t.Run(lane.name+"/"+test.name, func(t *testing.T) {
				want := map[string]int{"video": test.video, "image": test.image}[lane.name]
				if got := rises(series(test.messages, 40), lane.window, lane.above); got != want {
					t.Errorf("the alarm rises at minute %d, want %d", got, want)
				}
			})
		}
	}
}

// checkWaiting checks that an alarm matches the alarm simulated in rises.
func checkWaiting(t *testing.T, alarm map[string]any, window int, above float64) {
	t.Helper()
	got := map[string]string{}
	for _, query := range list(alarm["Metrics"]) {
		if expression := at(query, "Expression"); expression != nil {
			got["expression"] = fmt.Sprint(expression)
			continue
		}
		got[fmt.Sprint(at(query, "Id"))] = fmt.Sprint(at(query, "MetricStat", "Metric", "MetricName"), " ",
			at(query, "MetricStat", "Stat"), " ", at(query, "MetricStat", "Period"))
	}
	want := map[string]string{
		"expression": "IF(visible > 0, age, 0)",
		"visible":    fmt.Sprintf("ApproximateNumberOfMessagesVisible Minimum %d", 60*window),
		"age":        fmt.Sprintf("ApproximateAgeOfOldestMessage Maximum %d", 60*window),
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || alarm["Threshold"] != above || alarm["EvaluationPeriods"] != 1.0 ||
		alarm["TreatMissingData"] != "notBreaching" || alarm["ComparisonOperator"] != "GreaterThanThreshold" {
		t.Errorf("the alarm looks at %v: %v", got, alarm)
	}
}
