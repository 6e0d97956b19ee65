package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cutroom/shared/client"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
)

type Jobs struct {
	List     JobsList     `cmd:"" aliases:"ls" default:"withargs" help:"List jobs, newest first."`
	Show     JobsGet      `cmd:"" aliases:"get" help:"Show a job's request and outcome."`
	Watch    JobsWatch    `cmd:"" help:"Wait for a job to end and download the result."`
	Cancel   JobsCancel   `cmd:"" help:"Cancel a job that has not ended."`
	Download JobsDownload `cmd:"" help:"Download the result of a completed job, or resume the download."`
	Share    JobsShare    `cmd:"" help:"Create a public link to a result."`
	Rm       JobsRemove   `cmd:"" help:"Delete ended jobs with their results."`

	Deliveries JobsDeliveries `cmd:"" help:"List the deliveries to a job's webhook."`
}

type JobsList struct {
	Search string `short:"q" placeholder:"WORDS" help:"Only jobs with all of these words in the prompt, an input's name or the id."`
	Status string `predictor:"status" enum:"pending,processing,completed,failed,cancelled," default:"" placeholder:"STATUS" help:"Only jobs in this state: pending, processing, completed, failed or cancelled. Cancelled jobs also count as failed."`
	Model  string `short:"m" predictor:"model" placeholder:"MODEL" help:"Only jobs of this model."`
	Limit  int    `default:"20" placeholder:"N" help:"Maximum number (${default})."`
}

func (c *JobsList) Run(ctx context.Context, s *Invocation) error {
	filter, most := client.JobFilter{Status: c.Status, Model: c.Model, Search: c.Search}, c.Limit
	if c.Status == client.Cancelled {
		filter.Status, most = client.Failed, math.MaxInt
	}
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		var found []client.Job
		left := c.Limit
		for job, err := range service.Jobs(ctx, filter, most) {
			if err != nil {
				return err
			}
			if c.Status == client.Cancelled && !job.Cancelled() {
				continue
			}
			if left--; left < 0 {
				break
			}
			if s.JSON {
				if err := s.Print(job.Raw); err != nil {
					return err
				}
				continue
			}
			found = append(found, job)
		}
		if s.JSON {
			return nil
		}
		return s.listJobs(found)
	})
}

// listJobs prints a table of jobs. It has a cost column if any cost is known.
func (s *Invocation) listJobs(jobs []client.Job) error {
	priced := slices.ContainsFunc(jobs, func(job client.Job) bool { return job.Cost != nil })
	columns := []string{"JOB", "STATUS", "MODEL", "AGE", "INPUT", "PROMPT"}
	if priced {
		columns = slices.Insert(columns, costColumn, "COST")
	}
	list := s.newList(columns...)
	for _, job := range jobs {
		row := cells(job, time.Now())
		if priced {
			row = slices.Insert(row, costColumn, costOf(job))
		}
		if err := list.row(row); err != nil {
			return err
		}
	}
	return list.end()
}

const costColumn = 4

const maxCell = 40

func cells(job client.Job, now time.Time) []string {
	return []string{
		job.ID, statusOf(job), job.Model, age(job.CreatedAt, now), shortened(job.Inputs["data"].Name),
		shortened(strings.Join(strings.Fields(job.Prompt), " ")),
	}
}

func statusOf(job client.Job) string {
	switch {
	case job.Cancelled():
		return client.Cancelled
	case job.Status == client.Processing:
		return fmt.Sprintf("%s %.0f %%", job.Status, job.Progress*100)
	case job.Error != nil:
		return job.Status + ": " + job.Error.Code
	}
	return job.Status
}

// age returns the time elapsed since a given time, in the largest unit that fits.
func age(at *time.Time, now time.Time) string {
	if at == nil {
		return "-"
	}
	switch ago := max(0, now.Sub(*at)); {
	case ago < time.Minute:
		return fmt.Sprintf("%d s", ago/time.Second)
	case ago < time.Hour:
		return fmt.Sprintf("%d min", ago/time.Minute)
	case ago < 48*time.Hour:
		return fmt.Sprintf("%d h", ago/time.Hour)
	default:
		return fmt.Sprintf("%d days", ago/(24*time.Hour))
	}
}

func shortened(text string) string {
	if characters := []rune(text); len(characters) > maxCell {
		return string(characters[:maxCell-1]) + "…"
	}
	return text
}

func (s *Invocation) showJob(job client.Job) error {
	if s.JSON {
		return s.Print(job.Raw)
	}
	list := s.newList("JOB", job.ID)
	rows := [][]string{{"status", statusOf(job)}, {"model", job.Model}, {"prompt", job.Prompt}}
	for _, field := range slices.Sorted(maps.Keys(job.Inputs)) {
		input := job.Inputs[field]
		rows = append(rows, []string{field, strings.TrimSpace(input.Name + " (" + input.MIME + ", " + size(input.Size) + ")")})
	}
	for _, name := range slices.Sorted(maps.Keys(job.Options)) {
		rows = append(rows, []string{name, fmt.Sprint(job.Options[name])})
	}
	rows = append(rows, []string{"seed", fmt.Sprint(job.Seed)}, []string{"created", local(job.CreatedAt)},
		[]string{"started", local(job.StartedAt)}, []string{"ended", local(job.CompletedAt)})
	if job.QueuePosition > 0 {
		rows = append(rows, []string{"in line", outlookOf(job, time.Now())})
	}
	if job.EstimatedCompletion != nil {
		rows = append(rows, []string{"done", "in " + within(*job.EstimatedCompletion, time.Now())})
	}
	if job.EstimatedSeconds != nil {
		rows = append(rows, []string{"takes", "about " + (time.Duration(*job.EstimatedSeconds) * time.Second).String()})
	}
	if job.SecondsLeft != nil {
		rows = append(rows, []string{"left", "about " + (time.Duration(*job.SecondsLeft) * time.Second).String()})
	}
	if job.Cost != nil {
		rows = append(rows, []string{"cost", costOf(job)})
	}
	rows = append(rows, []string{"engine", job.Engine}, []string{"understood", strings.Join(job.Understood, ", ")},
		[]string{"notice", job.Notice})
	if job.Result != nil {
		rows = append(rows, resultRows(job.Result)...)
	}
	if job.Error != nil && !job.Cancelled() {
		rows = append(rows, []string{"error", job.Error.Message})
	}
	for _, row := range rows {
		if row[1] == "" {
			continue
		}
		if err := list.row(row); err != nil {
			return err
		}
	}
	return list.end()
}

// outlookOf returns a pending job's position in the queue and its expected start, or "" if unknown.
func outlookOf(job client.Job, now time.Time) string {
	if job.QueuePosition < 1 {
		return ""
	}
	at := "next"
	if before := job.QueuePosition - 1; before > 0 {
		at = fmt.Sprintf("%d ahead", before)
	}
	if job.EstimatedStart == nil {
		return at
	}
	return at + ", starts in " + within(*job.EstimatedStart, now)
}

func within(s client.Span, now time.Time) string {
	earliest := max(0, s.Earliest.Sub(now)).Round(time.Second)
	latest := max(time.Second, s.Latest.Sub(now)).Round(time.Second)
	if latest <= time.Second || earliest >= latest {
		return latest.String()
	}
	return fmt.Sprintf("%v to %v", earliest, latest)
}

func costOf(job client.Job) string {
	switch {
	case job.Bill != nil:
		return fmt.Sprintf("%.9g %s", job.Bill.Amount, job.Bill.Currency)
	case job.Cost == nil:
		return "-"
	}
	return fmt.Sprintf("about %g %s", job.Cost.Amount, job.Cost.Currency)
}

func resultRows(result *client.JobResult) [][]string {
	about := []string{result.MIME, size(result.Size)}
	if result.Width > 0 {
		about = append(about, fmt.Sprintf("%dx%d", result.Width, result.Height))
	}
	if result.Duration > 0 {
		about = append(about, fmt.Sprintf("%.1f s", result.Duration))
	}
	rows := [][]string{{"result", strings.Join(about, ", ")}, {"kept until", local(result.ExpiresAt)}}
	if signed := result.Credentials; signed != nil {
		rows = append(rows, []string{"credentials",
			signed.SourceType + ", signed by " + signed.SignedBy + ", " + local(signed.SignedAt)})
	}
	return rows
}

type JobsGet struct {
	ID string `arg:"" help:"Id of the job."`
}

func (c *JobsGet) Run(ctx context.Context, s *Invocation) error {
	return s.withJob(ctx, c.ID, (*client.Client).Job)
}

// withJob shows the job that the call returns.
func (s *Invocation) withJob(
	ctx context.Context, id string, call func(*client.Client, context.Context, string) (client.Job, error),
) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		job, err := call(service, ctx, id)
		if err != nil {
			return err
		}
		return s.showJob(job)
	})
}

type JobsWatch struct {
	ID     string `arg:"" help:"Id of the job."`
	Output string `short:"o" predictor:"file" placeholder:"PATH" help:"Path for the result. Default: do not download it."`
	Force  bool   `short:"f" help:"Replace an existing file."`
}

func (c *JobsWatch) Run(ctx context.Context, s *Invocation) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		// Report a missing job before printing anything.
		if _, err := service.Job(ctx, c.ID); err != nil {
			return err
		}
		e := &editor{invocation: s, client: service, order: order{Output: c.Output, Force: c.Force}}
		if err := checkFormat(cmp.Or(c.Output, "-"), ""); err != nil {
			return err
		}
		if err := e.free(cmp.Or(c.Output, "-")); err != nil {
			return err
		}
		display := s.newDisplay(true)
		tracker := display.track(filepath.Base(cmp.Or(c.Output, c.ID)))
		job, err := c.watch(ctx, e, tracker)
		tracker.end(err)
		display.end()
		if err != nil {
			return err
		}
		switch {
		case c.Output == "-": // the result went to stdout
		case s.JSON: // each change was printed as it happened
		case c.Output != "":
			err = s.printPath(c.Output)
		default:
			err = s.showJob(job)
		}
		return cmp.Or(err, checkChanged(job.Changed, job.Notice))
	})
}

// watch waits for the job. With --json, it prints each change on a separate line.
func (c *JobsWatch) watch(ctx context.Context, e *editor, tracker *tracker) (client.Job, error) {
	var printed error
	last := ""
	job, err := e.client.AwaitJob(ctx, c.ID, func(job client.Job) {
		tracker.editing(job)
		if e.invocation.JSON && c.Output != "-" && printed == nil && last != string(job.Raw) {
			last, printed = string(job.Raw), e.invocation.Print(job.Raw)
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

type JobsCancel struct {
	ID string `arg:"" help:"Id of the job."`
}

func (c *JobsCancel) Run(ctx context.Context, s *Invocation) error {
	return s.withJob(ctx, c.ID, (*client.Client).CancelJob)
}

type JobsDownload struct {
	ID     string `arg:"" help:"Id of the job."`
	Output string `short:"o" predictor:"file" placeholder:"PATH" help:"File or folder for the result; - is stdout. Default: in this folder, named after the source and the prompt."`
	Force  bool   `short:"f" help:"Replace an existing file."`
}

func (c *JobsDownload) Run(ctx context.Context, s *Invocation) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		output := c.Output
		if info, err := os.Stat(output); output == "" || err == nil && info.IsDir() {
			job, err := service.Job(ctx, c.ID)
			if err != nil {
				return err
			}
			if !modelForm.MatchString(job.ID) {
				return fmt.Errorf("the server returned the invalid job id %q", job.ID)
			}
			output = filepath.Join(output, downloadName(job))
		}
		if err := checkFormat(output, ""); err != nil {
			return err
		}
		e := &editor{invocation: s, client: service, order: order{Output: output, Force: c.Force}}
		return e.download(map[string]string{"job_id": c.ID, "output": output}, func(tracker *tracker) error {
			return e.fetch(ctx, c.ID, output, tracker)
		})
	})
}

// downloadName returns the name that the service gives to a job's result (docs/contract/jobs.md#results).
func downloadName(shown client.Job) string {
	extension := ".mp4"
	if shown.Result != nil {
		if kind, known := media.Find(shown.Result.MIME); known {
			extension = kind.Extension
		}
	}
	return named(shown.ID, shown.Inputs["data"].Name, shown.Prompt) + extension
}

// named builds a result's name from its source and prompt. If source and prompt are empty, the name is the parameter
// `otherwise`.
func named(otherwise, source, prompt string) string {
	request := job.Request{Prompt: prompt, Inputs: map[string]job.Input{"data": {Name: source}}}
	return job.Job{ID: otherwise, Request: request}.ResultName()
}

type JobsShare struct {
	ID  string        `arg:"" help:"Id of the job."`
	For time.Duration `placeholder:"TIME" help:"Lifetime of the link, such as 30m or 2h. Default: as long as the result."`
}

func (c *JobsShare) Run(ctx context.Context, s *Invocation) error {
	if c.For < 0 || c.For > 0 && c.For < time.Second {
		return &UsageError{"--for must be at least 1s"}
	}
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		share, err := service.ShareJob(ctx, c.ID, c.For)
		if err != nil {
			return err
		}
		if s.JSON {
			return s.Print(share.Raw)
		}
		s.note("anyone with the link can see the result until %s", local(share.ExpiresAt))
		return s.printLine(share.URL)
	})
}

type JobsRemove struct {
	IDs []string `arg:"" name:"id" help:"Ids of the jobs."`
}

func (c *JobsRemove) Run(ctx context.Context, s *Invocation) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		for _, id := range c.IDs {
			if err := service.DeleteJob(ctx, id); err != nil {
				return err
			}
			if s.JSON {
				if err := s.Print(map[string]string{"job_id": id, "status": "deleted"}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
