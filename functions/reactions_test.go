package functions_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"cutroom/functions"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/lambdatest"
	"cutroom/shared/testkit/programtest"
)

func (w *world) work(t *testing.T) {
	t.Helper()
	worker, err := programtest.Build(t.Context(), programs, "cutroom/cmd/worker")
	must(t, err)
	command := exec.Command(worker)
	command.Env = slices.Concat(os.Environ(), w.settings, w.endpoint(t, "WorkerTaskRole"),
		[]string{"CUTROOM_ADDR=127.0.0.1:0", "CUTROOM_WORKERS=1", "CUTROOM_SCRATCH=" +
			t.TempDir()})
	command.Stdout, command.Stderr = t.Output(), t.Output()
	command.WaitDelay = 5 * time.Second
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("stop the worker: %v", err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("the worker exited with %v", err)
		}
	})
	await.Until(t, "the worker has started", func() bool {
		warm, err := w.workers.Warm(t.Context(), job.ImageLane)
		must(t, err)
		return warm
	})
}

func (w *world) upload(t *testing.T) {
	t.Helper()
	picture, err := os.ReadFile(filepath.Join("..", "testdata", "reference.jpg"))
	must(t, err)
	w.store(t, "files/"+samplePromise+file.SignedSuffix, picture)
	w.store(t, "files/"+sampleGone+file.SignedSuffix, []byte("0123456789"))
}

func (w *world) happened(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	for id, code := range map[string]job.Code{
		"job_01K0000000000000000000L0ST": job.WorkerLost, "job_01K000000000000000000AB0RT": job.Cancelled,
		"job_01K000000000000000000FA11D": job.EngineError, "job_01K000000000000000000T1MED": job.TimedOut,
	} {
		if j, err := w.jobs.Get(ctx, id); err != nil || j.Status != job.Failed || j.Failure.Code != code {
			t.Errorf("%s: %s %+v, %v; want %s", id, j.Status, j.Failure, err, code)
		}
	}
	if f, err := w.files.Get(ctx, "acme", samplePromise, now); err != nil || f.MIME != "image/jpeg" {
		t.Errorf("the file that has arrived: %+v, %v", f, err)
	}
	if w.stored(t, "files/"+samplePromise+file.SignedSuffix) == nil || w.stored(t, "files/"+sampleClip) == nil {
		t.Error("the bytes of a file are missing")
	}
	if w.stored(t, "files/"+sampleGone+file.SignedSuffix) != nil {
		t.Error("bytes without a file still exist")
	}
	if w.stored(t, "files/"+sampleEnded) != nil {
		t.Error("the bytes of an expired file still exist")
	}
	if _, err := w.files.Get(ctx, "acme", sampleOld, now); !fault.Is(err, fault.NotFound) ||
		w.stored(t, "files/"+sampleOld) != nil {
		t.Errorf("the file that was deleted: %v", err)
	}
	w.notified(t)
}

func (w *world) pictured(t *testing.T) {
	t.Helper()
	event, err := os.ReadFile(filepath.Join("..", "events", "images", "edit.json"))
	must(t, err)
	var request map[string]any
	must(t, json.Unmarshal(event, &request))
	const field = "------sample\r\nContent-Disposition: form-data; name="
	form := field + "\"prompt\"\r\n\r\nsepia\r\n" + field + "\"data\"; filename=\"file\"\r\n\r\n" + samplePromise +
		"\r\n------sample--\r\n"
	request["body"], request["isBase64Encoded"] = form, false
	event, err = json.Marshal(request)
	must(t, err)
	answer, err := w.start(t, "images").Request(t.Context(), event)
	must(t, err)
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || answer.Status != http.StatusOK {
		t.Fatalf("%d %.300s, %v", answer.Status, body, err)
	}
	name := file.ThumbnailBlob("files/" + samplePromise + file.SignedSuffix)
	await.Until(t, "the worker made a thumbnail of the file", func() bool { return len(w.stored(t, name)) > 0 })
}

// metered returns the account's usage over two days, because a test may run past midnight.
func (w *world) metered(t *testing.T) (sum usage.Counts) {
	t.Helper()
	now := time.Now()
	totals, err := w.usage.Totals(t.Context(), "acme", usage.DayOf(now.Add(-24*time.Hour)), usage.DayOf(now), usage.All)
	must(t, err)
	for _, total := range totals {
		sum.Requests += total.Requests
		sum.CompletionTokens += total.CompletionTokens
	}
	return sum
}

// The request is rejected immediately, but wakes the workers. Many such requests wake them only once.
func TestImageRequestStartsFirstWorker(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var woken []string
	lambda := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		woken = append(woken, r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Amz-Invocation-Type"))
		w.WriteHeader(http.StatusAccepted)
	}))
	defer lambda.Close()
	w := newWorld(t)
	w.names["wake-me"] = "cutroom-dev-wake"
	calls := awstest.NewProxy(t, lambda.URL, 1, awstest.Faults{})
	w.guard(t, calls)
	f := w.start(t, "images", "AWS_ENDPOINT_URL_LAMBDA="+calls.URL, "CUTROOM_WAKE_FUNCTION=wake-me")
	event, err := os.ReadFile(filepath.Join("..", "events", "images", "edit.json"))
	must(t, err)
	for range 2 {
		answer, err := f.Request(t.Context(), event)
		must(t, err)
		answer.Body.Close()
		if answer.Status != 503 || answer.Header.Get("Retry-After") != "45" {
			t.Errorf("%d %v", answer.Status, answer.Header)
		}
	}
	if got := fmt.Sprint(woken); got != "[POST /2015-03-31/functions/wake-me/invocations Event]" {
		t.Errorf("woken by %s", got)
	}
}

// wake starts as many tasks as the queued jobs need, but at least one. It does nothing if enough tasks have been
// requested. scale adds tasks as the backlog grows, keeps new tasks, and removes idle tasks after a while.
func TestFleetSizeFollowsQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	service := w.makeWorkerService(t)
	video, image := w.cloud.MakeQueue(t, 10), w.cloud.MakeQueue(t, 10)
	maps.Copy(w.names, deployedNames(nil, map[string]string{"worker": "worker", "other": "worker",
		video.ARN: "video", image.ARN: "image"}))
	w.names["cutroom"] = "cutroom-dev"
	queues := sqs.NewFromConfig(w.cloud.Config())
	of := []string{"CUTROOM_CLUSTER=cutroom", "CUTROOM_VIDEO_QUEUE=" + video.URL, "CUTROOM_IMAGE_QUEUE=" + image.URL,
		"CUTROOM_WORKER_MAX=4", "CUTROOM_WORKER_BACKLOG=2", "CUTROOM_WORKER_IDLE=10"}
	wake := w.start(t, "wake", append(of, "CUTROOM_WORKER_SERVICE=worker")...)
	scale := w.start(t, "scale", append(of, "CUTROOM_WORKER_SERVICE=worker")...)
	start := func(name string, f *lambdatest.Function, event string, want int) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("..", "events", name, event+".json"))
		must(t, err)
		if _, err := f.Invoke(ctx, text); err != nil {
			t.Fatal(err)
		}
		if n := service.desired(t); n != want {
			t.Errorf("after %s the wanted number of workers is %d, want %d", name, n, want)
		}
	}
	start("scale", scale, "minute", 0)
	start("wake", wake, "running", 1)
	start("scale", scale, "minute", 1)
	service.set(t, 3)
	start("wake", wake, "running", 3)
	service.set(t, 1)
	for range 7 {
		if _, err := queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &video.URL, MessageBody: aws.String("a job")}); err != nil {
			t.Fatal(err)
		}
	}
	start("wake", w.start(t, "wake", append(of, "CUTROOM_WORKER_SERVICE=worker")...), "running", 4)
	service.set(t, 1)
	start("scale", scale, "minute", 4)
	state, err := w.fleet.Read(ctx)
	if seen := state.Fleet; err != nil || seen.Wanted != 4 || seen.Most != 4 || time.Since(seen.SeenAt) > time.Hour {
		t.Errorf("admission sees %+v, %v", seen, err)
	}
	if _, err := queues.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &video.URL}); err != nil {
		t.Fatal(err)
	}
	start("scale", scale, "minute", 4)
	if err := w.fleet.Saw(ctx, time.Now().Add(-11*time.Minute), job.Fleet{SeenAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	// One task keeps running, because the function wake was called recently.
	start("scale", scale, "minute", 1)

	unknown := w.start(t, "wake", append(of, "CUTROOM_WORKER_SERVICE=other")...)
	if _, err := unknown.Invoke(ctx, []byte("{}")); err == nil {
		t.Error("a missing service was scaled")
	}
}

type workerService struct{ client *ecs.Client }

// makeWorkerService creates a service named worker, without tasks, in the cluster cutroom.
func (w *world) makeWorkerService(t *testing.T) workerService {
	t.Helper()
	client := ecs.NewFromConfig(w.cloud.Config())
	ctx := t.Context()
	_, err := client.CreateCluster(ctx, &ecs.CreateClusterInput{ClusterName: aws.String("cutroom")})
	if err == nil {
		_, err = client.RegisterTaskDefinition(ctx, &ecs.RegisterTaskDefinitionInput{
			Family: aws.String("worker"), ContainerDefinitions: []ecstypes.ContainerDefinition{{
				Name: aws.String("worker"), Image: aws.String("worker"), Memory: aws.Int32(512),
			}},
		})
	}
	if err == nil {
		_, err = client.CreateService(ctx, &ecs.CreateServiceInput{
			Cluster: aws.String("cutroom"), ServiceName: aws.String("worker"), TaskDefinition: aws.String("worker"), DesiredCount: aws.Int32(0),
		})
	}
	must(t, err)
	return workerService{client}
}

func (s workerService) desired(t *testing.T) int {
	t.Helper()
	found, err := s.client.DescribeServices(t.Context(), &ecs.DescribeServicesInput{Cluster: aws.String("cutroom"), Services: []string{"worker"}})
	must(t, err)
	return int(found.Services[0].DesiredCount)
}

func (s workerService) set(t *testing.T, n int) {
	t.Helper()
	_, err := s.client.UpdateService(t.Context(), &ecs.UpdateServiceInput{
		Cluster: aws.String("cutroom"), Service: aws.String("worker"), DesiredCount: aws.Int32(int32(n)),
	})
	must(t, err)
}

// The function prints a single line.
func TestMissingSettingsAreNamed(t *testing.T) {
	t.Parallel()
	for _, name := range functions.Names() {
		f, err := lambdatest.Start(t.Context(), lambdatest.Program(program(t, name)))
		if name == "models" {
			if err != nil {
				t.Errorf("%s needs no setting, but failed: %v", name, err)
			} else {
				f.Kill()
			}
			continue
		}
		if err == nil {
			f.Kill()
			t.Errorf("%s started", name)
			continue
		}
		text := strings.TrimSpace(err.Error())
		if !strings.Contains(text, ": CUTROOM_") || !strings.HasSuffix(text, ": must be set") ||
			strings.Contains(text, "\n") {
			t.Errorf("%s printed %q", name, text)
		}
	}
}
