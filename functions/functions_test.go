package functions_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/functions"
	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/c2patest"
	"cutroom/shared/testkit/iamtest"
	"cutroom/shared/testkit/lambdatest"
	"cutroom/shared/testkit/programtest"
)

// programs is the folder with the built programs. build builds the functions there when first called.
var (
	programs string
	build    = sync.OnceValues(func() (string, error) {
		return lambdatest.BuildAll(context.Background(), "..", programtest.Folder(programs))
	})
)

var local awstest.Shared

func program(t *testing.T, name string) string {
	t.Helper()
	built, err := build()
	must(t, err)
	return filepath.Join(built, name, "bootstrap")
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if programs, err = os.MkdirTemp("", "functions-*"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(programs)
		if code := local.Main(m); code != 0 {
			return code
		}
		wrong, err := unneeded()
		if len(wrong) > 0 || err != nil {
			fmt.Fprintf(os.Stderr, "permissions: %v\n%s\n", err, strings.Join(wrong, "\n"))
			return 1
		}
		return 0
	}())
}

// Names and ids used by the events in events/.
const (
	sampleKey       = "ck_sample_events"
	sampleAdmin     = "ck_sample_admin1"
	sampleRevoked   = "ck_sample_revoked"
	sampleLister    = "ck_sample_lister"
	sampleClip      = "file_0BxSampleClip0000000000000"
	sampleOld       = "file_0BxSampleOld00000000000000"
	sampleEnded     = "file_0BxSampleEnded0000000000000"
	sampleGone      = "file_0BxSampleGone0000000000000"
	samplePromise   = "file_0BxSampleSigned00000000000"
	sampleDone      = "job_01K00000000000000000000D0E"
	samplePending   = "job_01K00000000000000000000PEN"
	sampleCancelled = "job_01K000000000000000000CANCE"
	sampleHooked    = "job_01K0000000000000000000H00K"
	samplePurged    = "job_01K000000000000000000PURGE"
)

// sampleAge is the time from creation to deadline of jobs that no worker receives. It is longer than any test takes.
const sampleAge = 12 * time.Hour

// world is an isolated part of the local AWS that contains the records and blobs used by the events.
type world struct {
	cloud   *awstest.Cloud
	machine string
	jobs    *dynamo.Jobs
	files   *dynamo.Files
	keys    *dynamo.Keys
	workers *dynamo.Workers
	fleet   *dynamo.FleetStore
	bucket  *s3blob.Store
	usage   *dynamo.Usage
	// signers contains the certificates that workers have signed with.
	signers  *dynamo.Signers
	budgets  *dynamo.Budgets
	receiver *receiver
	turns    awstest.Queue
	// settings is the environment of the functions and the worker.
	settings []string
	// account contains the policies that apply to these calls; nil means the deployment's.
	account *iamtest.Account
	names   map[string]string
	// proxy carries the AWS calls of the program that was started last.
	proxy *awstest.Proxy
}

// discard is a dispatcher that drops its jobs, so no worker receives them.
type discard struct{}

func (discard) Dispatch(context.Context, job.Job, dynamo.OpenEntry) error { return nil }

func newWorld(t *testing.T) *world {
	t.Helper()
	cloud := local.Cloud(t)
	tables, bucket := cloud.MakeTables(t), cloud.MakeBucket(t)
	definition, err := stepfn.Definition("aws", tables["jobs"])
	must(t, err)
	machine, turns := cloud.MakeStateMachine(t, definition), cloud.MakeQueue(t, 10)
	secret, video, image := cloud.MakeSecret(t, "cursors-"+rand.Text(), "the secret of these tests"), cloud.MakeQueue(t, 10), cloud.MakeQueue(t, 10)
	settings := []string{
		"CUTROOM_BUCKET=" + bucket, "CUTROOM_STATE_MACHINE=" + machine, "CUTROOM_SECRET_ARN=" + secret,
		"CUTROOM_VIDEO_QUEUE=" + video.URL, "CUTROOM_IMAGE_QUEUE=" + image.URL,
		"CUTROOM_WEBHOOK_QUEUE=" + turns.URL, "CUTROOM_WEBHOOK_ALLOW=127.0.0.1", "CUTROOM_STEPS_FUNCTION=steps-me",
	}
	for name, variable := range map[string]string{
		"jobs": "CUTROOM_JOBS_TABLE", "files": "CUTROOM_FILES_TABLE", "credentials": "CUTROOM_CREDENTIALS_TABLE",
		"usage":    "CUTROOM_USAGE_TABLE",
		"sessions": "CUTROOM_SESSIONS_TABLE",
	} {
		settings = append(settings, variable+"="+tables[name])
	}
	w := worldOf(t, cloud, tables, bucket)
	w.machine, w.turns, w.settings = machine, turns, append(settings, cloud.Environment()...)
	w.names = deployedNames(tables, map[string]string{
		"steps-me": "steps", bucket: "", machine: "jobs", secret: "service-key-AbCdEf", video.ARN: "video", image.ARN: "image", turns.ARN: "webhooks",
	})
	w.fill(t)
	return w
}

// deployedNames maps local names to the names in a deployment of the stage "dev". tables maps names in the schema to
// local names. others maps local names or ARNs to names in the deployment.
func deployedNames(tables, others map[string]string) map[string]string {
	names := map[string]string{"state machine of a token": "cutroom-dev-jobs"}
	for table, name := range tables {
		names[name] = "cutroom-dev-" + table
	}
	for arn, name := range others {
		names[arn[strings.LastIndex(arn, ":")+1:]] = "cutroom-dev-" + name
		if name == "" {
			names[arn] = "cutroom-dev-" + awstest.Account + "-" + awstest.Region
		}
	}
	return names
}

// worldOf returns a world that uses a bucket and existing tables. tables is keyed by the name in the schema.
func worldOf(t *testing.T, cloud *awstest.Cloud, tables map[string]string, bucket string) *world {
	t.Helper()
	client := dynamo.NewClient(cloud.Config())
	usage := dynamo.NewUsage(client, tables["usage"])
	clock, err := boottime.Open()
	must(t, err)
	budgets := dynamo.NewBudgets(client, tables["usage"], clock, rand.Text)
	return &world{
		cloud: cloud, keys: dynamo.NewKeys(client, tables["credentials"], tables["usage"]),
		files: dynamo.NewFiles(client, tables["files"]), usage: usage,
		budgets: budgets, signers: dynamo.NewSigners(client, tables["jobs"]),
		workers: dynamo.NewWorkers(client, tables["jobs"], time.Now),
		fleet:   dynamo.NewFleetStore(client, tables["jobs"]),
		jobs:    dynamo.NewJobs(dynamo.NewRuns(client, tables["jobs"]).CountIn(usage).HoldIn(budgets), discard{}, nil, time.Now),
		bucket:  s3blob.New(cloud.Config(), bucket), receiver: newReceiver(t),
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) fill(t *testing.T) {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Millisecond)
	key := w.fillKeys(t, now)
	w.fillFiles(t, key, now)
	w.fillJobs(t, key, now)
}

func (w *world) fillKeys(t *testing.T, now time.Time) (id string) {
	t.Helper()
	for _, sample := range []struct {
		secret, account string
		admin           bool
	}{
		{sampleKey, "acme", false}, {sampleAdmin, "acme", true}, {sampleRevoked, "acme", false},
		{sampleLister, "single", true},
	} {
		key, err := credential.NewKey(sample.secret, sample.account, credential.DefaultTier, "", now)
		must(t, err)
		key.Admin = sample.admin
		// `make local-aws` has made some of the keys.
		if there, err := w.keys.FindKey(t.Context(), key.Hash); err == nil {
			key = there
		} else {
			must(t, w.keys.CreateKey(t.Context(), audit.Operator(key.CreatedAt), key))
		}
		if id == "" {
			id = key.ID
		}
	}
	return id
}

func (w *world) fillFiles(t *testing.T, key string, now time.Time) {
	t.Helper()
	clip, err := os.ReadFile(filepath.Join("..", "testdata", "clip.mp4"))
	must(t, err)
	picture, err := os.ReadFile(filepath.Join("..", "testdata", "reference.jpg"))
	must(t, err)
	for i, sample := range []struct {
		id        string
		content   []byte
		announced bool
	}{
		{sampleClip, clip, false}, {sampleOld, []byte("0123456789"), false},
		{sampleEnded, []byte("0123456789"), false}, {samplePromise, picture, true},
	} {
		f := file.File{
			ID: sample.id, Account: "acme", Key: key, Filename: "clip.mp4", MIME: "video/mp4",
			Size: int64(len(sample.content)), MD5: md5Of(sample.content),
			Blob: "files/" + sample.id, CreatedAt: now.Add(time.Duration(i) * time.Millisecond), Lifetime: time.Hour,
			ExpiresAt: now.Add(time.Hour),
		}
		if sample.announced {
			f.Blob, f.Pending, f.UploadUntil = f.Blob+file.SignedSuffix, true, now.Add(time.Hour)
		} else {
			w.store(t, f.Blob, sample.content)
			if sample.id == sampleClip {
				w.store(t, file.ThumbnailBlob(f.Blob), []byte("small clip"))
			}
		}
		must(t, w.files.Create(t.Context(), f, 0))
	}
}

// fillJobs stores the events' jobs, one of which has a webhook.
func (w *world) fillJobs(t *testing.T, key string, now time.Time) {
	t.Helper()
	ctx := t.Context()
	pending := job.Job{
		Account: "acme", Key: key, Model: "gen-2.5", Lane: job.VideoLane, Seed: 7, Status: job.Pending,
		CreatedAt: now, Deadline: now.Add(sampleAge),
		Request: job.Request{
			Prompt: "watercolor", Options: map[string]any{"resolution": "720p"},
			Inputs: map[string]job.Input{"data": {Blob: "jobs/x/data", Name: "beach.mp4", MIME: "video/mp4", Size: 5}},
		},
	}
	large := budget.Budget{ID: budget.ID{Account: "acme", Period: budget.Month, Unit: budget.Jobs}, Limit: 1_000_000}
	must(t, w.budgets.Set(ctx, audit.Operator(time.Now()), large))
	claims := budget.Claims([]budget.Budget{large}, key, budget.Amounts{Jobs: 1}, now)
	for _, id := range []string{
		sampleDone, samplePending, sampleCancelled, "job_01K0000000000000000000L0ST", "job_01K000000000000000000AB0RT",
		"job_01K000000000000000000FA11D", "job_01K000000000000000000T1MED", samplePurged,
	} {
		pending.ID = id
		must(t, w.jobs.Accept(ctx, pending, 0, claims...))
	}
	hooked := pending
	hooked.ID, hooked.Webhook = sampleHooked, w.receiver.url
	must(t, w.jobs.Accept(ctx, hooked, 0, claims...))
	must(t, w.jobs.Fail(ctx, hooked.ID, "", job.WorkerLostFailure(), now))
	result := job.Result{Blob: job.ResultBlob(sampleDone, "run"), MIME: "video/mp4", Size: 10,
		SHA256: "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"}
	w.store(t, result.Blob, []byte("0123456789"))
	w.store(t, job.Job{ID: sampleDone, Nonce: "run"}.ThumbnailsBlob(), job.Thumbnails{Input: []byte("small")}.Encode())
	must(t, w.jobs.Fail(ctx, samplePurged, "", job.WorkerLostFailure(), now))
	_, err := w.jobs.Start(ctx, sampleDone, "run", now)
	must(t, err)
	must(t, w.jobs.Complete(ctx, sampleDone, "run", result, now))
}

// endpoint returns the settings that let a program call AWS, limited to what the role's policies permit.
func (w *world) endpoint(t *testing.T, role string) []string {
	t.Helper()
	w.proxy = w.cloud.Proxy(t, 3, awstest.Faults{})
	w.guard(t, w.proxy)
	if !w.account.HasRole(role) {
		t.Fatalf("the deployment has no role %s", role)
	}
	return []string{"AWS_ENDPOINT_URL=" + w.proxy.URL, "AWS_ACCESS_KEY_ID=" + role}
}

func (w *world) guard(t *testing.T, proxy *awstest.Proxy) {
	t.Helper()
	if w.account == nil {
		w.account = awstest.Deployed(t)
	}
	proxy.Guard(t, awstest.Guard{Account: w.account, Names: w.names, Asked: asked.Note})
}

// start runs a function until the test ends, with a deployment's settings and the given settings.
func (w *world) start(t *testing.T, name string, settings ...string) *lambdatest.Function {
	t.Helper()
	endpoint := w.endpoint(t, roleOf(name))
	function, ok := functions.Find(name)
	if !ok {
		t.Fatalf("no function %s", name)
	}
	if name == "c2pa" {
		// In a deployment, the library is next to the program.
		endpoint = append(endpoint, "CUTROOM_C2PA_LIBRARY="+c2patest.Path(t))
	}
	given := slices.DeleteFunc(slices.Clone(w.settings), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return strings.HasPrefix(name, "CUTROOM_") && !slices.Contains(function.Variables, name)
	})
	settings = slices.Concat(given, endpoint, settings)
	f, err := lambdatest.Start(t.Context(), lambdatest.Program(program(t, name)), settings...)
	must(t, err)
	t.Cleanup(func() {
		f.Kill()
		if t.Failed() {
			t.Logf("the output of %s:\n%s", name, f.Log())
		}
	})
	return f
}

// Lambda loads a function's program at every cold start, so it must be small: at most 16.5 MB. The limit for the
// functions batches and steps is 19 MB, because no client waits for a model's first token from them. Programs of the
// tests are 5 % smaller, because nothing is inlined in AWS's packages.
func TestProgramsAreSmall(t *testing.T) {
	t.Parallel()
	for _, name := range functions.Names() {
		most := int64(15_700_000)
		if name == "batches" || name == "steps" {
			most = 18_000_000
		}
		info, err := os.Stat(program(t, name))
		must(t, err)
		if info.Size() > most {
			t.Errorf("%s has %d bytes, more than %d", name, info.Size(), most)
		}
	}
}
