package functions_test

import (
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
)

// serve runs the media container on the world until the test ends, and gives its
// URL.
func (w *world) serve(t *testing.T) string {
	t.Helper()
	command := exec.Command(filepath.Join(built, "media"))
	command.Env = slices.Concat(os.Environ(), w.settings, []string{w.endpoint(t, "MediaTaskRole"), "CUTROOM_ADDR=127.0.0.1:0"})
	address := &listening{found: make(chan string, 1)}
	command.Stdout, command.Stderr = address, address
	command.WaitDelay = 5 * time.Second
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("stop the container: %v", err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("the container ended with %v", err)
		}
		if t.Failed() {
			t.Logf("what the container wrote:\n%s", address.log.String())
		}
	})
	select {
	case found := <-address.found:
		return "http://" + found
	case <-time.After(time.Minute):
		t.Fatal("the container does not serve")
		return ""
	}
}

// listening is a program's log, in which it says where it listens.
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

// The container answers the requests that the events stand for as the functions
// do, and takes bodies that they cannot.
func TestTheContainerAnswersAsTheFunctions(t *testing.T) {
	w := newWorld(t)
	base := w.serve(t)
	for _, name := range []string{"jobs", "content", "files", "tokens", "models", "quota"} {
		cases, err := filepath.Glob(filepath.Join("..", "events", name, "*.want.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range cases {
			path = strings.TrimSuffix(path, ".want.json")
			if filepath.Base(path) == "below-a-base-path" {
				continue // a custom domain's, which a container has not
			}
			t.Run(name+"/"+filepath.Base(path), func(t *testing.T) {
				event, want := read(t, path)
				response, err := http.DefaultClient.Do(requestOf(t, base, event))
				if err != nil {
					t.Fatal(err)
				}
				judge(t, want, response.StatusCode, response.Header, response.Body)
			})
		}
	}

	var form bytes.Buffer
	writer := multipart.NewWriter(&form)
	part, err := writer.CreateFormFile("file", "large.bin")
	if err != nil {
		t.Fatal(err)
	}
	part.Write(make([]byte, 20<<20))
	writer.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v1/files", &form)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("x-api-key", sampleKey)
	request.Header.Set("Content-Type", writer.FormDataContentType())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 200 || !strings.Contains(string(body), `"size_bytes":20971520`) {
		t.Errorf("20 MiB: %d %s, %v", response.StatusCode, body, err)
	}
}

// requestOf gives the request that an event of API Gateway stands for.
func requestOf(t *testing.T, base string, text []byte) *http.Request {
	t.Helper()
	var event events.APIGatewayProxyRequest
	if err := json.Unmarshal(text, &event); err != nil {
		t.Fatal(err)
	}
	body := []byte(event.Body)
	if event.IsBase64Encoded {
		decoded, err := base64.StdEncoding.DecodeString(event.Body)
		if err != nil {
			t.Fatal(err)
		}
		body = decoded
	}
	request, err := http.NewRequestWithContext(t.Context(), event.HTTPMethod, base+event.Path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.URL.RawQuery = url.Values(event.MultiValueQueryStringParameters).Encode()
	request.Header = http.Header{}
	for field, values := range event.MultiValueHeaders {
		request.Header[http.CanonicalHeaderKey(field)] = values
	}
	request.Host = event.RequestContext.DomainName
	return request
}
