package deploycheck

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/stepfn"
	domain "cutroom/shared/domain/job"
	"cutroom/shared/service/worker"
)

// runs returns the records of jobs as workers see them.
func (c *awsCloud) runs() *dynamo.Runs {
	return dynamo.NewRuns(c.tables, dynamo.TableName(c.Stage, "jobs"))
}

func (c *awsCloud) videoQueue() map[domain.Lane]string {
	return map[domain.Lane]string{domain.VideoLane: c.VideoQueue}
}

// Accept writes the record of a job and starts its execution, as the service does.
func (c *awsCloud) Accept(ctx context.Context, j domain.Job) error {
	machine := stepfn.NewMachine(c.settings, c.StateMachine, c.videoQueue())
	return dynamo.NewJobs(c.runs(), machine, nil, time.Now).Accept(ctx, j, 0)
}

const (
	// loseTime is how long a job is waited for in its queue.
	loseTime = 20 * time.Second
	// loseLease is how long its message is leased, as workers do.
	loseLease = 45 * time.Second
	// loseOthers is how many messages of other jobs are passed over. They are handed back
	// within seconds.
	loseOthers = 5
)

// Lose leases the message of a job, begins a run and leaves both.
func (c *awsCloud) Lose(ctx context.Context, id string) (bool, error) {
	runs := c.runs()
	queue := sqsqueue.New(sqsqueue.Config{
		AWS: c.settings, URLs: c.videoQueue(), Jobs: runs, Tasks: stepfn.NewTasks(c.settings), PollTime: time.Second,
		Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	defer queue.Close()
	var others []worker.Delivery
	defer func() {
		for _, d := range others {
			_ = d.Nack(context.WithoutCancel(ctx), 0) // its lease ends anyway
		}
	}()
	bounded, cancel := context.WithTimeout(ctx, loseTime)
	defer cancel()
	for len(others) < loseOthers {
		d, err := queue.Receive(bounded, domain.VideoLane, loseLease)
		if bounded.Err() != nil && ctx.Err() == nil && d == nil {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if d.JobID() != id {
			others = append(others, d)
			continue
		}
		_, err = runs.Start(ctx, id, "lost-"+strings.TrimPrefix(id, "job_"), time.Now().UTC())
		return err == nil, err
	}
	return false, nil
}

// Runs reads the record of a job.
func (c *awsCloud) Runs(ctx context.Context, id string) (int, error) {
	j, err := c.runs().Get(ctx, id)
	return j.Runs, err
}

// Fire sets the state of an alarm.
func (c *awsCloud) Fire(ctx context.Context, alarm string) error {
	_, err := c.alarms.SetAlarmState(ctx, &cloudwatch.SetAlarmStateInput{
		AlarmName: aws.String(c.name(alarm)), StateValue: cloudwatchtypes.StateValueAlarm,
		StateReason: aws.String("A check of the deploy sets this alarm off. Nothing is wrong."),
	})
	if err != nil {
		return fmt.Errorf("set an alarm off: %w", err)
	}
	return nil
}

// Story reads the history of an alarm.
func (c *awsCloud) Story(ctx context.Context, alarm string, since time.Time) (AlarmStory, error) {
	found, err := c.alarms.DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{c.name(alarm)}})
	if err != nil {
		return AlarmStory{}, fmt.Errorf("look at an alarm: %w", err)
	}
	if len(found.MetricAlarms) != 1 {
		return AlarmStory{}, fmt.Errorf("there is no alarm %s", c.name(alarm))
	}
	story, fired, quiet := AlarmStory{Actions: len(found.MetricAlarms[0].AlarmActions)}, false, false
	pages := cloudwatch.NewDescribeAlarmHistoryPaginator(c.alarms,
		&cloudwatch.DescribeAlarmHistoryInput{AlarmName: aws.String(c.name(alarm)), StartDate: &since})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return AlarmStory{}, fmt.Errorf("read the history of an alarm: %w", err)
		}
		for _, item := range page.AlarmHistoryItems {
			switch summary := aws.ToString(item.HistorySummary); {
			case strings.HasSuffix(summary, " to ALARM"):
				fired = true
			case strings.Contains(summary, " from ALARM to "):
				quiet = true
			case strings.HasPrefix(summary, "Successfully executed"):
				story.Done++
			case strings.HasPrefix(summary, "Failed to execute"):
				story.Failure = summary
			}
		}
	}
	story.Recovered = fired && quiet
	return story, nil
}
