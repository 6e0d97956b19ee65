package awstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
)

// ServeBySAM runs the Makefile target sam-api or sam-lambda until the test ends, and returns its
// URL. At the end it stops the target as Ctrl-C would and checks that no containers remain.
func (l *Local) ServeBySAM(t T, target string) (url string) {
	t.Helper()
	address, err := programtest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(address, ":")
	said, gone := &programtest.Output{Limit: 64 << 10}, make(chan struct{})
	command := l.Command(context.Background(), target, "SAM_PORT="+port)
	command.Stdout, command.Stderr = said, said
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = command.Wait() // ProcessState has the exit status
		close(gone)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGINT) // fails if it has already exited
		<-gone
		if t.Failed() {
			t.Logf("SAM's output:\n%s", said)
		}
		out, err := exec.Command("docker", "ps", "--no-trunc", "--format", "{{.ID}} {{.Mounts}}").Output()
		if err != nil || strings.Contains(string(out), "/sam/"+l.Stage+"/") {
			t.Errorf("SAM left containers: %v\n%s", err, out)
		}
	})
	url = "http://" + address
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for until := time.After(await.Max); ; {
		response, err := http.Get(url)
		if err == nil {
			response.Body.Close()
			return url
		}
		select {
		case <-again.C: // not listening yet
		case <-gone:
			t.Fatalf("make %s exited:\n%s", target, said)
		case <-until:
			t.Fatalf("make %s does not accept connections:\n%s", target, said)
		}
	}
}

// InvokeBySAM invokes a function at sam-lambda's URL and returns the response. If the function
// fails, the error contains its output.
func (l *Local) InvokeBySAM(ctx context.Context, url, function string, event []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, await.Max)
	defer cancel()
	path := fmt.Sprintf("%s/2015-03-31/functions/cutroom-%s-%s/invocations", url, l.Stage, function)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(event))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || response.Header.Get("X-Amz-Function-Error") != "") {
		err = errors.New("the function failed: " + response.Status + " " + string(answer))
	}
	return answer, err
}
