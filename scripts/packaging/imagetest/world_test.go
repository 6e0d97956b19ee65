//go:build docker

package imagetest_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/servertest"
)

const (
	key     = "ck_images_test"
	account = "studio"
)

// world is a local AWS with the resources that the container programs need.
type world struct {
	cloud  *awstest.Cloud
	tables map[string]string
	bucket string
	// settings is the environment of every container.
	settings []string
}

// newWorld starts a local AWS, with settings for MiniStack, and creates a key for an account.
func newWorld(t *testing.T, settings ...string) *world {
	t.Helper()
	cloud := awstest.Start(t, settings...)
	w := &world{cloud: cloud, tables: cloud.MakeTables(t), bucket: cloud.MakeBucket(t)}
	queues := map[job.Lane]string{job.VideoLane: cloud.MakeQueue(t, 10).URL, job.ImageLane: cloud.MakeQueue(t, 10).URL}
	definition, err := stepfn.Definition("aws", w.tables["jobs"])
	if err != nil {
		t.Fatal(err)
	}
	secret := cloud.MakeSecret(t, "images", strings.Repeat("s", 32))
	record, err := credential.NewKey(key, account, credential.DefaultTier, "", time.Now())
	if err == nil {
		err = dynamo.NewKeys(dynamo.NewClient(cloud.Config()), w.tables["credentials"], w.tables["usage"]).CreateKey(t.Context(),
			audit.Operator(record.CreatedAt), record)
	}
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(cloud.URL, "http://")
	w.settings = append(cloud.Environment(), "AWS_ENDPOINT_URL=http://"+reachable(t, address),
		"CUTROOM_BUCKET="+w.bucket, "CUTROOM_STATE_MACHINE="+cloud.MakeStateMachine(t, definition),
		"CUTROOM_VIDEO_QUEUE="+queues[job.VideoLane], "CUTROOM_IMAGE_QUEUE="+queues[job.ImageLane],
		"CUTROOM_SECRET_ARN="+secret, "CUTROOM_WORKERS=1")
	for name, table := range w.tables {
		w.settings = append(w.settings, "CUTROOM_"+strings.ToUpper(name)+"_TABLE="+table)
	}
	return w
}

func environment(settings []string) []string {
	var options []string
	for _, setting := range settings {
		options = append(options, "--env", setting)
	}
	return options
}

// start starts a container program with the world's settings and publishes its port on this machine.
func (w *world) start(t *testing.T, program string, settings ...string) *container {
	t.Helper()
	options := append(environment(w.settings), environment(settings)...)
	return start(t, imageOf("cutroom-"+program), append(options, "--publish", "127.0.0.1::8080"), nil)
}

func (w *world) media(t *testing.T) *servertest.Client {
	t.Helper()
	return &servertest.Client{URL: w.start(t, "media").ready(8080), Key: key}
}

func clip(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile("../../../testdata/clip.mp4")
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func submit(t *testing.T, client *servertest.Client, prompt string) string {
	t.Helper()
	submitted, err := client.Submit(t.Context(), "gen-2.1", servertest.Form{
		servertest.File("data", "clip.mp4", clip(t)), servertest.Text("prompt", prompt),
		servertest.Text("resolution", "720p"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return submitted.ID
}

func processing(t *testing.T, client *servertest.Client, id string) {
	t.Helper()
	eventually(t, "the job is running", func() bool {
		got, err := client.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got.Ended() {
			t.Fatalf("the job has ended: %+v", got)
		}
		return got.Status == "processing"
	})
}

// completed waits for a job to end and checks that its result is a video.
func completed(t *testing.T, client *servertest.Client, id string) {
	t.Helper()
	got, err := client.Await(t.Context(), id, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != "completed" {
		t.Fatalf("the job is %s: %+v", got.Status, got.Error)
	}
	content, err := client.Content(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if len(content.Body) < 10_000 || string(content.Body[4:8]) != "ftyp" {
		t.Errorf("the result is not a video, of %d bytes", len(content.Body))
	}
}
