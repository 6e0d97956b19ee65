package deploycheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

var (
	// alarmNames are the alarms that every deploy has that has any (docs/runbook.md).
	alarmNames = []string{
		"media-errors", "inference-errors", "failed-executions", "dead-letters", "video-queue-age", "image-queue-age",
		"internal-errors", "webhook-dead-letters", "function-throttles",
	}
	// optionalAlarms are those that a deploy has by its options.
	optionalAlarms = []string{
		"batch-errors", "image-refusals", "media-unhealthy", "realtime-errors", "realtime-latency", "realtime-unhealthy",
		"submission-latency", "table-throttles",
	}
)

// checkAlarms looks whether all alarms are there, and none tells of anything.
func checkAlarms(ctx context.Context, v *visit) (string, error) {
	states, err := v.Cloud.Alarms(ctx)
	if err != nil {
		return "", err
	}
	if len(states) == 0 {
		return "", skip("the deploy has no alarms (-c watch=off)")
	}
	var wrong []error
	found := 0
	for _, name := range slices.Concat(alarmNames, optionalAlarms) {
		state, ok := states[name]
		if ok {
			found++
		} else if slices.Contains(alarmNames, name) {
			wrong = append(wrong, fmt.Errorf("there is no alarm %s", name))
		}
		if state == "ALARM" {
			wrong = append(wrong, fmt.Errorf("%s is in alarm: see %s#%s", name, runbookPage, name))
		}
	}
	return fmt.Sprintf("%d alarms, all quiet", found), errors.Join(wrong...)
}

// firedAlarm is the alarm that is set off: its metric is of rare events, and so quiet.
const firedAlarm = "webhook-dead-letters"

// checkAlarmFires sets an alarm off, and waits until it is quiet again. What it does when it
// goes off has to succeed: to tell somebody, where anybody is told.
func checkAlarmFires(ctx context.Context, v *visit) (string, error) {
	if !v.FireAlarm {
		return "", skip("it tells those who are told of alarms: say --fire-alarm")
	}
	states, err := v.Cloud.Alarms(ctx)
	if err != nil {
		return "", err
	}
	switch states[firedAlarm] {
	case "":
		return "", skip("the deploy has no alarms (-c watch=off)")
	case "ALARM":
		return "", skip("%s is in alarm already: see %s#%s", firedAlarm, runbookPage, firedAlarm)
	}
	// CloudWatch's clock may differ from this one.
	const skew = time.Minute
	began := v.Now()
	if err := v.Cloud.Fire(ctx, firedAlarm); err != nil {
		return "", err
	}
	for {
		story, err := v.Cloud.Story(ctx, firedAlarm, began.Add(-skew))
		if err != nil {
			return "", err
		}
		if story.Failure != "" {
			return "", fmt.Errorf("%s went off, and nobody was told: %s", firedAlarm, story.Failure)
		}
		if story.Recovered && story.Done >= story.Actions {
			if story.Actions == 0 {
				return firedAlarm + " went off and recovered; nobody is told of alarms (-c alarmEmail=…)", nil
			}
			return fmt.Sprintf("%s went off, told whom it is to tell, and recovered after %s", firedAlarm,
				round(v.Now().Sub(began))), nil
		}
		if err := v.wait(ctx); err != nil {
			return "", fmt.Errorf("%s went off: recovered %t, %d of %d actions done: %w", firedAlarm, story.Recovered,
				story.Done, story.Actions, err)
		}
	}
}

// checkDeadLetters looks whether a message was given up on.
func checkDeadLetters(ctx context.Context, v *visit) (string, error) {
	queues, err := v.Cloud.DeadLetters(ctx)
	if err != nil {
		return "", err
	}
	var full []string
	for name, messages := range queues {
		if messages > 0 {
			full = append(full, fmt.Sprintf("%s has %d", name, messages))
		}
	}
	if slices.Sort(full); len(full) > 0 {
		return "", errors.New("messages were given up on: " + strings.Join(full, ", "))
	}
	return fmt.Sprintf("%d queues, all empty", len(queues)), nil
}

const (
	// keptAtLeast and keptAtMost bound how long the record of a job is kept after its end:
	// at least 7 days, for which it is shown (docs/contract/jobs.md#retention), and a
	// day or two beyond.
	keptAtLeast, keptAtMost = 7*24*time.Hour - time.Hour, 9 * 24 * time.Hour
)

// checkTables looks whether the tables let items end by themselves.
func checkTables(ctx context.Context, v *visit) (string, error) {
	wrong, err := v.Cloud.Lifetimes(ctx)
	if err != nil {
		return "", err
	}
	if len(wrong) > 0 {
		return "", fmt.Errorf("items do not end by themselves in %s", strings.Join(wrong, ", "))
	}
	return "items end by themselves", nil
}

// checkLifetimes looks whether the record of a job ends by itself in time.
func checkLifetimes(ctx context.Context, v *visit) (string, error) {
	var err error
	id := v.done
	if id == "" {
		if id, err = v.cancelled(ctx); err != nil {
			return "", err
		}
	}
	end, err := v.Cloud.JobEnd(ctx, id)
	if err != nil {
		return "", err
	}
	if left := end.Sub(v.Now()); end.IsZero() || left < keptAtLeast || left > keptAtMost {
		return "", fmt.Errorf("the record of %s ends by itself %s, want in 7 to 9 days", id, describe(end, left))
	}
	return "the record of a job goes " + describe(end, end.Sub(v.Now())), nil
}

func describe(end time.Time, left time.Duration) string {
	if end.IsZero() {
		return "never"
	}
	return "in " + left.Round(time.Minute).String()
}
