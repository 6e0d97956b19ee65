package gateway

import (
	"context"
	"errors"
	"time"
)

// longestCall bounds one call of an upstream, however lively it is.
const longestCall = time.Hour

// errSilent is the cause of a context that a watchdog has ended.
var errSilent = errors.New("the upstream was silent for too long")

// watchdog ends the call of an upstream that is silent for too long. It is armed
// while the upstream is waited for, and at rest while the caller is.
type watchdog struct {
	timer *time.Timer
	until time.Time
}

func newWatchdog(cancel context.CancelCauseFunc, patience time.Duration) watchdog {
	return watchdog{time.AfterFunc(patience, func() { cancel(errSilent) }), time.Now().Add(longestCall)}
}

// arm gives the upstream its time for the next bytes.
func (d watchdog) arm(patience time.Duration) {
	d.timer.Reset(min(patience, max(time.Until(d.until), 0)))
}

// rest waits for nothing.
func (d watchdog) rest() { d.timer.Stop() }
