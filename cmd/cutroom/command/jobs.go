package command

import (
	"context"
	"fmt"
	"path/filepath"

	"cutroom/shared/client"
)

// Jobs are the commands on jobs. The default is to list them.
type Jobs struct {
	List     JobsList     `cmd:"" default:"withargs" help:"List jobs, newest first."`
	Get      JobsGet      `cmd:"" help:"Show a job."`
	Watch    JobsWatch    `cmd:"" help:"Wait for a job's end, and fetch the result."`
	Cancel   JobsCancel   `cmd:"" help:"Cancel a job that has not ended."`
	Download JobsDownload `cmd:"" help:"Fetch the result of a completed job; goes on where an earlier try broke off."`

	Deliveries JobsDeliveries `cmd:"" help:"List the tries to tell a job's webhook."`
}

// JobsList lists jobs.
type JobsList struct {
	Status string `predictor:"status" enum:"pending,processing,completed,failed," default:"" placeholder:"STATUS" help:"Only jobs in this state: pending, processing, completed or failed."`
	Model  string `short:"m" predictor:"model" placeholder:"MODEL" help:"Only jobs of this model."`
	Limit  int    `default:"20" placeholder:"N" help:"How many at most (${default})."`
}

// Run lists the jobs.
func (c *JobsList) Run(ctx context.Context, s *Session) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		list := s.newList("JOB", "STATUS", "MODEL", "CREATED", "PROGRESS", "SEED", "ERROR")
		for job, err := range service.Jobs(ctx, client.JobFilter{Status: c.Status, Model: c.Model}, c.Limit) {
			if err != nil {
				return err
			}
			if err := list.add(job.Raw, cells(job)...); err != nil {
				return err
			}
		}
		return list.end()
	})
}

func cells(job client.Job) []string {
	why := ""
	if job.Error != nil {
		why = job.Error.Code
	}
	return []string{
		job.ID, job.Status, job.Model, local(job.CreatedAt), fmt.Sprintf("%.0f %%", job.Progress*100), fmt.Sprint(job.Seed),
		why,
	}
}

// showJob prints a job.
func (s *Session) showJob(job client.Job) error {
	if s.JSON {
		return s.Print(job.Raw)
	}
	list := s.newList("JOB", job.ID)
	why := ""
	if job.Error != nil {
		why = job.Error.Code + ": " + job.Error.Message
	}
	for _, row := range [][]string{
		{"status", job.Status}, {"model", job.Model}, {"seed", fmt.Sprint(job.Seed)},
		{"progress", fmt.Sprintf("%.0f %%", job.Progress*100)}, {"created", local(job.CreatedAt)},
		{"started", local(job.StartedAt)}, {"ended", local(job.CompletedAt)}, {"error", why},
	} {
		if row[1] == "" {
			continue
		}
		if err := list.row(row); err != nil {
			return err
		}
	}
	return list.end()
}

// JobsGet shows a job.
type JobsGet struct {
	ID string `arg:"" help:"Id of the job."`
}

// Run shows the job.
func (c *JobsGet) Run(ctx context.Context, s *Session) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		job, err := service.Job(ctx, c.ID)
		if err != nil {
			return err
		}
		return s.showJob(job)
	})
}

// JobsWatch waits for a job.
type JobsWatch struct {
	ID     string `arg:"" help:"Id of the job."`
	Output string `short:"o" predictor:"file" placeholder:"PATH" help:"Where the result goes; without it, it stays at the service."`
	Force  bool   `short:"f" help:"Replace what is there."`
}

// Run waits for the job.
func (c *JobsWatch) Run(ctx context.Context, s *Session) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		// A job that does not exist is reported before anything is shown.
		if _, err := service.Job(ctx, c.ID); err != nil {
			return err
		}
		e := &editor{session: s, client: service, order: order{Output: c.Output, Force: c.Force}}
		if err := e.free(first(c.Output, "-")); err != nil {
			return err
		}
		display := s.newDisplay(true)
		tracker := display.track(filepath.Base(first(c.Output, c.ID)))
		job, err := c.watch(ctx, e, tracker)
		tracker.end(err)
		display.end()
		if err != nil {
			return err
		}
		if c.Output == "-" {
			return nil // stdout has the result
		}
		if c.Output != "" && !s.JSON {
			return s.printPath(c.Output)
		}
		if s.JSON {
			return nil // each change was printed
		}
		return s.showJob(job)
	})
}

// watch waits for the job, and with --json prints each change on a line.
func (c *JobsWatch) watch(ctx context.Context, e *editor, tracker *tracker) (client.Job, error) {
	var printed error
	last := ""
	job, err := e.client.AwaitJob(ctx, c.ID, func(job client.Job) {
		tracker.editing(job)
		if e.session.JSON && c.Output != "-" && printed == nil && last != string(job.Raw) {
			last, printed = string(job.Raw), e.session.Print(job.Raw)
		}
	})
	switch {
	case printed != nil:
		return job, printed
	case ctx.Err() != nil:
		return job, &InterruptedError{JobID: c.ID}
	case err != nil:
		return job, err
	case job.Status == client.Failed:
		return job, &JobError{job}
	case c.Output == "":
		return job, nil
	}
	return job, e.fetch(ctx, c.ID, c.Output, tracker)
}

// JobsCancel cancels a job.
type JobsCancel struct {
	ID string `arg:"" help:"Id of the job."`
}

// Run cancels the job.
func (c *JobsCancel) Run(ctx context.Context, s *Session) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		job, err := service.CancelJob(ctx, c.ID)
		if err != nil {
			return err
		}
		return s.showJob(job)
	})
}

// JobsDownload fetches a result.
type JobsDownload struct {
	ID     string `arg:"" help:"Id of the job."`
	Output string `short:"o" required:"" predictor:"file" placeholder:"PATH" help:"Where the result goes; - is stdout."`
	Force  bool   `short:"f" help:"Replace what is there."`
}

// Run fetches the result.
func (c *JobsDownload) Run(ctx context.Context, s *Session) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		e := &editor{session: s, client: service, order: order{Output: c.Output, Force: c.Force}}
		return e.download(map[string]string{"job_id": c.ID, "output": c.Output}, func(tracker *tracker) error {
			return e.fetch(ctx, c.ID, c.Output, tracker)
		})
	})
}
