package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cutroom/shared/client"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/sniff"
)

type listJobsInput struct {
	Status string `json:"status,omitempty" jsonschema:"Only jobs in this state."`
	Model  string `json:"model,omitempty" jsonschema:"Only jobs of this model, by its id or an alias."`
	Limit  int    `json:"limit,omitempty" jsonschema:"Maximum number of jobs."`
}

type listJobsOutput struct {
	Jobs []map[string]any `json:"jobs" jsonschema:"Newest first."`
}

type getJobInput struct {
	JobID       string `json:"job_id" jsonschema:"Id of the job (job_…)."`
	WaitSeconds int    `json:"wait_seconds,omitempty" jsonschema:"Time to wait for the job to end; 0 returns it immediately. Progress is reported during the wait."`
}

type cancelJobInput struct {
	JobID string `json:"job_id" jsonschema:"Id of the job (job_…)."`
}

type fetchInput struct {
	JobID     string `json:"job_id" jsonschema:"Id of a completed job (job_…)."`
	Path      string `json:"path,omitempty" jsonschema:"Path for the result in the allowed folder: .mp4 for a video, .png for a picture. Default: named after the job's id."`
	Overwrite bool   `json:"overwrite,omitempty" jsonschema:"Replace an existing file."`
	Show      bool   `json:"show,omitempty" jsonschema:"Also return the picture itself, to view it."`
}

type fetchOutput struct {
	Path     string `json:"path" jsonschema:"Path of the result."`
	Size     int64  `json:"size_bytes" jsonschema:"Its size in bytes."`
	MIMEType string `json:"mime_type" jsonschema:"Its type."`
}

const (
	// usualWait and longestWait are the default and maximum wait for a job, in seconds. Many agents
	// abandon a call after a minute. Every job ends within ten minutes.
	usualWait, longestWait = 45, 600
	usualJobs, mostJobs    = 20, 100
	// largestShown is the maximum size, in bytes, of an image that is included in a tool's result.
	largestShown = 3 << 20
)

func (t tools) addJobs(server *mcp.Server) {
	add(t, server, &mcp.Tool{
		Name: "list_jobs", Description: "List the jobs of the last 7 days, newest first.",
		InputSchema: input[listJobsInput](func(properties map[string]*jsonschema.Schema) {
			oneOf(properties["status"], client.Pending, client.Processing, client.Completed, client.Failed)
			within(properties["limit"], 1, mostJobs, usualJobs)
		}),
		Annotations: reads("List jobs"),
	}, t.listJobs)
	add(t, server, &mcp.Tool{
		Name: "get_job",
		Description: "Wait for a job to end, or for wait_seconds to pass, and return its record. A job that is still running is " +
			"not an error: call again.",
		InputSchema: input[getJobInput](func(properties map[string]*jsonschema.Schema) {
			within(properties["wait_seconds"], 0, longestWait, usualWait)
		}),
		Annotations: reads("Wait for a job"),
	}, t.getJob)
	add(t, server, &mcp.Tool{
		Name: "cancel_job", Description: "Cancel a job that has not ended. It will have no result.",
		Annotations: makes("Cancel a job", true),
	}, t.cancelJob)
	add(t, server, &mcp.Tool{
		Name:        "fetch",
		Description: "Write the result of a completed job to a file in the allowed folder. Results are kept for 24 hours.",
		Annotations: makes("Save a result", true),
	}, t.fetch)
	t.addOutcomes(server)
}

func (t tools) listJobs(ctx context.Context, c *call, in listJobsInput) (listJobsOutput, error) {
	out := listJobsOutput{Jobs: []map[string]any{}}
	for job, err := range c.Jobs(ctx, client.JobFilter{Status: in.Status, Model: in.Model}, in.Limit) {
		if err != nil {
			return out, err
		}
		shown, err := jobOf(job)
		if err != nil {
			return out, err
		}
		out.Jobs = append(out.Jobs, shown.Job)
	}
	return out, nil
}

var errWaited = errors.New("the job continues")

func (t tools) getJob(ctx context.Context, c *call, in getJobInput) (jobOutput, error) {
	job, err := c.Job(ctx, in.JobID)
	if err != nil || job.Ended() || in.WaitSeconds == 0 {
		if err != nil {
			return jobOutput{}, err
		}
		return jobOf(job)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, time.Duration(in.WaitSeconds)*time.Second, errWaited)
	defer cancel()
	job, err = c.AwaitJob(waiting, in.JobID, func(seen client.Job) {
		c.progress.report(ctx, seen.Progress, 1, seen.Status)
	})
	if errors.Is(err, errWaited) {
		job, err = c.Job(ctx, in.JobID)
	}
	if err != nil {
		return jobOutput{}, err
	}
	return jobOf(job)
}

func (t tools) cancelJob(ctx context.Context, c *call, in cancelJobInput) (jobOutput, error) {
	job, err := c.CancelJob(ctx, in.JobID)
	if err != nil {
		return jobOutput{}, err
	}
	return jobOf(job)
}

// jobID matches ids that may become file names.
var jobID = regexp.MustCompile(`^[0-9A-Za-z_-]{1,128}$`)

// fetch writes a result into the folder. It checks that the result is media and that the name
// matches its type, so that a server cannot make it write other kinds of files.
func (t tools) fetch(ctx context.Context, c *call, in fetchInput) (fetchOutput, error) {
	name := "."
	if in.Path != "" {
		var err error
		if name, err = t.Folder.name(in.Path); err != nil {
			return fetchOutput{}, err
		}
		if !in.Overwrite {
			if err := t.Folder.free(name); err != nil {
				return fetchOutput{}, err
			}
		}
	} else if !jobID.MatchString(in.JobID) {
		return fetchOutput{}, fmt.Errorf("%q is not a job id", in.JobID)
	}
	written, err := t.Folder.draft(filepath.Dir(name), t.NewID())
	if err != nil {
		return fetchOutput{}, err
	}
	defer written.discard()
	err = c.CopyContent(ctx, in.JobID, written, func(done, total int64) {
		c.progress.report(ctx, float64(done), float64(max(total, 0)), "downloading")
	})
	if err != nil {
		return fetchOutput{}, err
	}
	kind, size, err := written.inspect()
	if err != nil {
		return fetchOutput{}, err
	}
	if in.Path == "" {
		name = in.JobID + kind.Extension
		if !in.Overwrite {
			if err := t.Folder.free(name); err != nil {
				return fetchOutput{}, err
			}
		}
	} else if extension := filepath.Ext(name); !strings.EqualFold(extension, kind.Extension) {
		return fetchOutput{}, fmt.Errorf("the result is %s: choose a path that ends with %s", kind.MIME, kind.Extension)
	}
	out := fetchOutput{filepath.Join(t.Folder.Path(), name), size, kind.MIME}
	if in.Show && kind.Image && size <= largestShown {
		picture, err := io.ReadAll(io.NewSectionReader(written, 0, size))
		if err != nil {
			return fetchOutput{}, err
		}
		c.shown = append(c.shown, &mcp.ImageContent{Data: picture, MIMEType: kind.MIME})
	}
	return out, written.keep(name, in.Overwrite)
}

// inspect detects the draft's type from its content, and returns its size in bytes.
func (d *draft) inspect() (media.Type, int64, error) {
	info, err := d.Stat()
	if err != nil {
		return media.Type{}, 0, err
	}
	head, err := io.ReadAll(io.NewSectionReader(d, 0, media.SniffLen))
	if err != nil {
		return media.Type{}, 0, err
	}
	kind, known := sniff.Media(head)
	if !known {
		return media.Type{}, 0, errors.New("the downloaded file was neither a video nor a picture, so it was deleted")
	}
	return kind, info.Size(), nil
}
