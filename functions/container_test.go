package functions_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/c2patest"
	"cutroom/shared/testkit/programtest"
)

type container struct {
	url     string
	command *exec.Cmd
	log     *listening
	ended   chan struct{}
}

func (w *world) serve(t *testing.T) *container {
	t.Helper()
	media, err := programtest.Build(t.Context(), programs, "cutroom/cmd/media")
	must(t, err)
	c := &container{command: exec.Command(media), log: &listening{found: make(chan string, 1)},
		ended: make(chan struct{})}
	c.command.Env = slices.Concat(os.Environ(), w.settings, w.endpoint(t, "MediaTaskRole"),
		[]string{"CUTROOM_ADDR=127.0.0.1:0", "CUTROOM_C2PA_LIBRARY=" + c2patest.Path(t)})
	c.command.Stdout, c.command.Stderr = c.log, c.log
	c.command.WaitDelay = 5 * time.Second
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.command.Wait() // ProcessState contains the exit status
		close(c.ended)
	}()
	t.Cleanup(func() {
		c.stop(t)
		if t.Failed() {
			t.Logf("the container's output:\n%s", c.log)
		}
	})
	select {
	case found := <-c.log.found:
		c.url = "http://" + found
	case <-c.ended:
		t.Fatal("the container ended")
	case <-time.After(await.Max):
		t.Fatal("the container did not start")
	}
	return c
}

// stop stops the container the way ECS does, and waits as long as ECS does before it kills a
// container. It does nothing if the container has already ended.
func (c *container) stop(t *testing.T) {
	t.Helper()
	_ = c.command.Process.Signal(syscall.SIGTERM) // fails if it has already ended
	select {
	case <-c.ended:
	case <-time.After(await.Max):
		t.Error("the container still runs after SIGTERM")
		_ = c.command.Process.Kill() // it may just have ended
		await.Receive(t, "c.ended", c.ended)
	}
	if code := c.command.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the container exited with %d", code)
	}
}

type listening struct {
	mu    sync.Mutex
	log   bytes.Buffer
	found chan string
}

func (l *listening) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var line struct{ Address string }
	if json.Unmarshal(p, &line) == nil && line.Address != "" {
		l.found <- line.Address
	}
	return l.log.Write(p)
}

func (l *listening) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.String()
}

func TestContainerRespondsLikeTheFunctions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.serve(t)
	t.Run("answers", c.testAnswers)
	t.Run("large body", c.testLargeBody)
	t.Run("stop", func(t *testing.T) { c.testStop(t, w) })
}

// testAnswers checks that the container responds to the functions' events as the functions do.
func (c *container) testAnswers(t *testing.T) {
	for _, name := range []string{"jobs", "content", "c2pa", "files", "tokens", "models", "quota"} {
		cases, err := filepath.Glob(filepath.Join("..", "events", name, "*.want.json"))
		must(t, err)
		for _, path := range cases {
			path = strings.TrimSuffix(path, ".want.json")
			if filepath.Base(path) == "below-a-base-path" {
				continue // for custom domains, which the container does not support
			}
			t.Run(name+"/"+filepath.Base(path), func(t *testing.T) {
				event, want := read(t, path)
				response, err := http.DefaultClient.Do(requestOf(t, c.url, event))
				must(t, err)
				judge(t, want, response.StatusCode, response.Header, response.Body)
			})
		}
	}
}

func (c *container) testLargeBody(t *testing.T) {
	var form bytes.Buffer
	writer := multipart.NewWriter(&form)
	part, err := writer.CreateFormFile("file", "large.bin")
	must(t, err)
	part.Write(make([]byte, 20<<20))
	writer.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/v1/files", &form)
	must(t, err)
	request.Header.Set("x-api-key", sampleKey)
	request.Header.Set("Content-Type", writer.FormDataContentType())
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 200 || !strings.Contains(string(body), `"size_bytes":20971520`) {
		t.Errorf("20 MiB: %d %s, %v", response.StatusCode, body, err)
	}
}

// testStop checks that a shutdown ends a job's event stream cleanly, so that neither the client nor
// the shutdown waits for the job, and that the job continues.
func (c *container) testStop(t *testing.T, w *world) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+"/v1/jobs/"+samplePending+"/events", nil)
	must(t, err)
	request.Header.Set("x-api-key", sampleKey)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	stream := bufio.NewReader(response.Body)
	for line := ""; !strings.HasPrefix(line, "data: "); {
		if line, err = stream.ReadString('\n'); err != nil {
			t.Fatalf("the stream begins with %d %q: %v", response.StatusCode, line, err)
		}
	}
	c.stop(t)
	if rest, err := io.ReadAll(stream); err != nil || strings.Contains(string(rest), "data:") {
		t.Errorf("the stream continues with %q and ends with %v", rest, err)
	}
	if strings.Contains(c.log.String(), "requests were cut off") {
		t.Error("the shutdown waited for the stream until its limit")
	}
	if j, err := w.jobs.Get(t.Context(), samplePending); err != nil || j.Status != job.Pending {
		t.Errorf("the job is %s, %v", j.Status, err)
	}
}

func requestOf(t *testing.T, base string, text []byte) *http.Request {
	t.Helper()
	var event events.APIGatewayProxyRequest
	if err := json.Unmarshal(text, &event); err != nil {
		t.Fatal(err)
	}
	body := []byte(event.Body)
	if event.IsBase64Encoded {
		decoded, err := base64.StdEncoding.DecodeString(event.Body)
		must(t, err)
		body = decoded
	}
	request, err := http.NewRequestWithContext(t.Context(), event.HTTPMethod, base+event.Path, bytes.NewReader(body))
	must(t, err)
	request.URL.RawQuery = url.Values(event.MultiValueQueryStringParameters).Encode()
	request.Header = http.Header{}
	for field, values := range event.MultiValueHeaders {
		request.Header[http.CanonicalHeaderKey(field)] = values
	}
	request.Host = event.RequestContext.DomainName
	return request
}
