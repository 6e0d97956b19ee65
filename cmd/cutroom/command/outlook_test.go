package command

import (
	"testing"
	"time"

	"cutroom/shared/client"
)

func TestQueuePositionIsDescribed(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	span := func(earliest, latest time.Duration) *client.Span {
		return &client.Span{Earliest: now.Add(earliest), Latest: now.Add(latest)}
	}
	for want, job := range map[string]client.Job{
		"":                               {Status: client.Processing},
		"next":                           {QueuePosition: 1},
		"2 ahead":                        {QueuePosition: 3},
		"2 ahead, starts in 20s to 1m5s": {QueuePosition: 3, EstimatedStart: span(20*time.Second, 65*time.Second)},
		"next, starts in 0s to 9s":       {QueuePosition: 1, EstimatedStart: span(-time.Second, 9*time.Second)},
		"next, starts in 1s":             {QueuePosition: 1, EstimatedStart: span(-time.Minute, -time.Second)},
	} {
		if got := outlookOf(job, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
