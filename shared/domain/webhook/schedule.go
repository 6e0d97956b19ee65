package webhook

import "time"

// waits lists the pauses between attempts. All seven attempts together take about seven and a quarter hours.
var waits = [...]time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour,
}

// LongestWait is the longest wait including jitter.
const LongestWait = 6*time.Hour + 6*time.Hour/5

const MaxAttempts = len(waits) + 1

// jitter is the maximum fraction by which a wait is extended at random. It keeps a recovering
// receiver from getting all messages at once.
const jitter = 0.2

const (
	statusGone       = 410
	leastSuccess     = 200
	leastRedirection = 300
	leastClientError = 400
)

func delivered(status int) bool { return status >= leastSuccess && status < leastRedirection }

// nextAfter returns when the next attempt is due, or the zero time if there is none. A receiver may ask for a longer
// wait, up to the wait after the next attempt. random is in [0, 1).
func nextAfter(failed Attempt, ended time.Time, retryAfter time.Duration, random float64) time.Time {
	if failed.Number >= MaxAttempts || failed.Status == statusGone {
		return time.Time{}
	}
	step := failed.Number - 1
	wait := waits[step]
	longest := waits[min(step+1, len(waits)-1)]
	wait = max(wait, min(retryAfter, longest))
	return ended.Add(wait + time.Duration(jitter*random*float64(wait)))
}
