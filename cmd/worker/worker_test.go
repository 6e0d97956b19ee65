package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/adapter/secrets"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/c2patest"
	"cutroom/shared/testkit/programtest"
)

var program string

func TestMain(m *testing.M) { os.Exit(programtest.Main(m, "cutroom/cmd/worker", &program)) }

type world struct {
	jobs     *dynamo.Jobs
	bucket   *s3blob.Store
	workers  *dynamo.Workers
	signers  *dynamo.Signers
	settings []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cloud := awstest.Start(t)
	table, usage, bucket := cloud.MakeTable(t, "jobs"), cloud.MakeTable(t, "usage"), cloud.MakeBucket(t)
	queues := map[job.Lane]string{job.VideoLane: cloud.MakeQueue(t, 10).URL, job.ImageLane: cloud.MakeQueue(t, 10).URL}
	definition, err := stepfn.Definition("aws", table)
	if err != nil {
		t.Fatal(err)
	}
	client := dynamo.NewClient(cloud.Config())
	machine := stepfn.NewMachine(cloud.Config(), cloud.MakeStateMachine(t, definition), queues)
	return &world{
		jobs:   dynamo.NewJobs(dynamo.NewRuns(client, table), machine, sqsqueue.NewLengths(cloud.Config(), queues), time.Now),
		bucket: s3blob.New(cloud.Config(), bucket), workers: dynamo.NewWorkers(client, table, time.Now),
		signers: dynamo.NewSigners(client, table),
		settings: append(cloud.Environment(),
			"CUTROOM_JOBS_TABLE="+table, "CUTROOM_USAGE_TABLE="+usage, "CUTROOM_BUCKET="+bucket,
			"CUTROOM_ADDR=127.0.0.1:0", "CUTROOM_WORKERS=1",
			"CUTROOM_VIDEO_QUEUE="+queues[job.VideoLane], "CUTROOM_IMAGE_QUEUE="+queues[job.ImageLane],
			"CUTROOM_C2PA_LIBRARY="+c2patest.Path(t),
			"CUTROOM_C2PA_SECRET_ARN="+cloud.MakeSecret(t, "credentials", secrets.Unset)),
	}
}

func (w *world) submit(t *testing.T, id, prompt string) {
	t.Helper()
	clip, err := os.ReadFile(mediatest.Video{Width: 160, Height: 90, Seconds: 0.3}.Make(t))
	if err != nil {
		t.Fatal(err)
	}
	input := job.Input{Blob: job.InputBlob(id, "data"), MIME: "video/mp4", Size: int64(len(clip))}
	if _, err := w.bucket.Put(t.Context(), input.Blob, bytes.NewReader(clip)); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	if err := w.jobs.Accept(t.Context(), job.Job{
		ID: id, Account: "acme", Key: "key", Model: "gen-2.1", Lane: job.VideoLane, Seed: 1, Status: job.Pending,
		CreatedAt: now, Deadline: now.Add(job.MaxAge),
		Request: job.Request{Prompt: prompt, Options: map[string]any{"resolution": "720p"},
			Inputs: map[string]job.Input{"data": input}},
	}, 0); err != nil {
		t.Fatal(err)
	}
}

func (w *world) await(t *testing.T, id, what string, is func(job.Job) bool) job.Job {
	t.Helper()
	return await.Value(t, "the job is "+what, func() job.Job {
		j, err := w.jobs.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}, is)
}

type process struct {
	*exec.Cmd
	log programtest.Output
}

// start runs a worker in a scratch folder until the test ends.
func (w *world) start(t *testing.T, scratch string, settings ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(program)}
	p.Env = slices.Concat(os.Environ(), w.settings, []string{"CUTROOM_SCRATCH=" + scratch}, settings)
	p.Stdout, p.Stderr = &p.log, &p.log
	p.WaitDelay = 5 * time.Second
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill() // usually fails, because the worker has ended
		_ = p.Wait()
		if t.Failed() {
			t.Logf("the worker's output:\n%s", p.log.String())
		}
	})
	return p
}

// address waits for a worker's health server and returns its address.
func (p *process) address(t *testing.T) string {
	t.Helper()
	return await.Value(t, "the address of the worker's health", func() (address string) {
		for line := range strings.Lines(p.log.String()) {
			var entry struct{ Address string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Address != "" {
				return entry.Address
			}
		}
		return ""
	}, func(address string) bool { return address != "" })
}

// The worker prints a single line.
func TestInvalidSettingsAreNamed(t *testing.T) {
	t.Parallel()
	complete := []string{"CUTROOM_JOBS_TABLE=a", "CUTROOM_USAGE_TABLE=a", "CUTROOM_BUCKET=a", "CUTROOM_VIDEO_QUEUE=a", "CUTROOM_IMAGE_QUEUE=a",
		"CUTROOM_ADDR=127.0.0.1:0"}
	for _, c := range []struct {
		settings []string
		says     string
	}{
		{nil, "CUTROOM_JOBS_TABLE: must be set\n"},
		{complete[:1], "CUTROOM_USAGE_TABLE: must be set\n"},
		{complete[:4], "CUTROOM_IMAGE_QUEUE: must be set\n"},
		{append(complete, "CUTROOM_WORKERS=none"), "CUTROOM_WORKERS: \"none\" must be an integer from 1 to 256\n"},
		{append(complete, "CUTROOM_ENGINE=other"), "CUTROOM_ENGINE: \"other\" is not an http URL such as http://127.0.0.1:8090; use preview, URLs of engine servers separated by commas, openai:URL or comfyui:URL\n"},
		{append(complete, "CUTROOM_ENHANCE_MODEL=m"), "CUTROOM_ENHANCE_URL: not set, but CUTROOM_ENHANCE_MODEL or CUTROOM_ENHANCE_KEY is set\n"},
		{append(complete, "CUTROOM_SCRATCH=/dev/null"), "CUTROOM_SCRATCH: mkdir /dev/null: not a directory\n"},
		{append(complete, "CUTROOM_ADDR=nowhere"), "CUTROOM_ADDR: listen tcp: address nowhere: missing port in address\n"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), await.Max)
		command := exec.CommandContext(ctx, program)
		command.Env = append([]string{"PATH=" + os.Getenv("PATH")}, c.settings...)
		var stderr bytes.Buffer
		command.Stderr = &stderr
		err := command.Run()
		cancel()
		if err == nil || stderr.String() != c.says {
			t.Errorf("with %v it prints %q, %v; want %q", c.settings, stderr.String(), err, c.says)
		}
	}
}
