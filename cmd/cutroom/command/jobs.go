package command

import (
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

// Jobs are the commands on jobs. The default is to list them.
type Jobs struct {
	List     JobsList     `cmd:"" aliases:"ls" default:"withargs" help:"List jobs, newest first."`
	Show     JobsGet      `cmd:"" aliases:"get" help:"Show a job: its request, and its outcome."`
	Watch    JobsWatch    `cmd:"" help:"Wait for a job's end, and fetch the result."`
	Cancel   JobsCancel   `cmd:"" help:"Cancel a job that has not ended."`
	Download JobsDownload `cmd:"" help:"Fetch the result of a completed job; resumes a broken download."`
	Share    JobsShare    `cmd:"" help:"Make a link to a result, for anyone."`
	Rm       JobsRemove   `cmd:"" help:"Delete jobs that have ended, with their results."`

	Deliveries JobsDeliveries `cmd:"" help:"List the deliveries to a job's webhook."`
}

type JobsList struct {
	Search string `short:"q" placeholder:"WORDS" help:"Only jobs with each of these words in the prompt, an input's name or the id."`
	Status string `predictor:"status" enum:"pending,processing,completed,failed,cancelled," default:"" placeholder:"STATUS" help:"Only jobs in this state: pending, processing, completed, failed or cancelled. Cancelled jobs are failed ones, too."`
	Model  string `short:"m" predictor:"model" placeholder:"MODEL" help:"Only jobs of this model."`
	Limit  int    `default:"20" placeholder:"N" help:"How many at most (${default})."`
}

func (c *JobsList) Run(ctx context.Context, s *Session) error {
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

// listJobs prints a table of jobs. It has a column of costs if any cost is known.
func (s *Session) listJobs(jobs []client.Job) error {
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

// costColumn is the place of the cost in a table of jobs.
const costColumn = 4

// maxCell is how many characters of a name or a prompt a table shows.
const maxCell = 40

func cells(job client.Job, now time.Time) []string {
	return []string{
		job.ID, statusOf(job), job.Model, age(job.CreatedAt, now), shortened(job.Inputs["data"].Name),
		shortened(strings.Join(strings.Fields(job.Prompt), " ")),
	}
}

// statusOf returns the state of a job in words: how far it is, or why it failed.
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

// age returns how long ago a time was, in its largest unit.
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

// shortened returns the beginning of a text, for a table.
func shortened(text string) string {
	if characters := []rune(text); len(characters) > maxCell {
		return string(characters[:maxCell-1]) + "…"
	}
	return text
}

func (s *Session) showJob(job client.Job) error {
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

// outlookOf returns a pending job's place in the queue and its expected start, or "" if unknown.
func outlookOf(job client.Job, now time.Time) string {
	if job.QueuePosition < 1 {
		return ""
	}
	at := "next"
	if before := job.QueuePosition - 1; before > 0 {
		at = fmt.Sprintf("%d before it", before)
	}
	if job.EstimatedStart == nil {
		return at
	}
	return at + ", begins in " + within(*job.EstimatedStart, now)
}

// within returns how long it is from now until a span, in words.
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

func (c *JobsGet) Run(ctx context.Context, s *Session) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		job, err := service.Job(ctx, c.ID)
		if err != nil {
			return err
		}
		return s.showJob(job)
	})
}

type JobsWatch struct {
	ID     string `arg:"" help:"Id of the job."`
	Output string `short:"o" predictor:"file" placeholder:"PATH" help:"Where the result goes; without it, it stays at the service."`
	Force  bool   `short:"f" help:"Replace an existing file."`
}

func (c *JobsWatch) Run(ctx context.Context, s *Session) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		// A job that does not exist is reported before anything is shown.
		if _, err := service.Job(ctx, c.ID); err != nil {
			return err
		}
		e := &editor{session: s, client: service, order: order{Output: c.Output, Force: c.Force}}
		if err := checkFormat(first(c.Output, "-"), ""); err != nil {
			return err
		}
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

type JobsCancel struct {
	ID string `arg:"" help:"Id of the job."`
}

func (c *JobsCancel) Run(ctx context.Context, s *Session) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		job, err := service.CancelJob(ctx, c.ID)
		if err != nil {
			return err
		}
		return s.showJob(job)
	})
}

type JobsDownload struct {
	ID     string `arg:"" help:"Id of the job."`
	Output string `short:"o" predictor:"file" placeholder:"PATH" help:"Where the result goes, a file or a folder; - is stdout. Without it, into this folder, named after the source and the prompt."`
	Force  bool   `short:"f" help:"Replace an existing file."`
}

func (c *JobsDownload) Run(ctx context.Context, s *Session) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		output := c.Output
		if info, err := os.Stat(output); output == "" || err == nil && info.IsDir() {
			job, err := service.Job(ctx, c.ID)
			if err != nil {
				return err
			}
			if !modelForm.MatchString(job.ID) {
				return fmt.Errorf("the server says that the job is %q, which is not the id of a job", job.ID)
			}
			output = filepath.Join(output, downloadName(job))
		}
		if err := checkFormat(output, ""); err != nil {
			return err
		}
		e := &editor{session: s, client: service, order: order{Output: output, Force: c.Force}}
		return e.download(map[string]string{"job_id": c.ID, "output": output}, func(tracker *tracker) error {
			return e.fetch(ctx, c.ID, output, tracker)
		})
	})
}

// downloadName returns the name of a job's result, as the service names it (docs/contract/jobs.md#results).
func downloadName(shown client.Job) string {
	extension := ".mp4"
	if shown.Result != nil {
		if kind, known := media.Find(shown.Result.MIME); known {
			extension = kind.Extension
		}
	}
	return named(shown.ID, shown.Inputs["data"].Name, shown.Prompt) + extension
}

// named builds a result's name from its source and prompt. Without both it returns otherwise.
func named(otherwise, source, prompt string) string {
	request := job.Request{Prompt: prompt, Inputs: map[string]job.Input{"data": {Name: source}}}
	return job.Job{ID: otherwise, Request: request}.ResultName()
}

type JobsShare struct {
	ID  string        `arg:"" help:"Id of the job."`
	For time.Duration `placeholder:"TIME" help:"How long the link lasts, such as 30m or 2h. Without it, as long as the result."`
}

func (c *JobsShare) Run(ctx context.Context, s *Session) error {
	if c.For < 0 || c.For > 0 && c.For < time.Second {
		return &UsageError{"--for: a link lasts a second at least"}
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

func (c *JobsRemove) Run(ctx context.Context, s *Session) error {
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
