// Package awstest runs a local AWS for tests: a separate MiniStack process, with the tables,
// buckets and queues of a deployment.
package awstest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
)

const (
	// Region and Account identify the local AWS.
	Region  = "eu-central-1"
	Account = "000000000000"

	// stopTime is the timeout for a clean shutdown.
	stopTime = 10 * time.Second
)

// launcher is the Python program that runs the local AWS.
//
//go:embed ministack.py
var launcher string

// Cloud is a running local AWS. It is stopped when the test that started it ends.
type Cloud struct {
	URL string

	command *exec.Cmd
	log     *programtest.Output
	ended   chan struct{}
	made    counter
}

// Start starts an empty local AWS. settings are environment variables for MiniStack, such as "LAMBDA_EXECUTOR=local".
//
// A test with many subtests should start only one and let each subtest create its own tables,
// buckets and queues, whose names never clash.
func Start(t T, settings ...string) *Cloud {
	t.Helper()
	cloud, err := tryStart(Tool(t, "python/bin/python"), t.TempDir(), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cloud.stop(); err != nil {
			t.Errorf("stop the local AWS: %v", err)
		}
		cloud.show(t)
	})
	return cloud
}

// tryStart starts a local AWS on a free port. If another process takes that port first, the local
// AWS exits, and tryStart tries another port.
func tryStart(python, folder string, settings []string) (cloud *Cloud, err error) {
	for range 3 {
		if cloud, err = start(python, folder, settings); err == nil {
			return cloud, nil
		}
	}
	return nil, err
}

// Tool returns the path of a program installed by scripts/install-test-tools.sh. name is its path below .tools.
func Tool(t T, name string) string {
	t.Helper()
	path := filepath.Join(moduleRoot(t), ".tools", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing: run scripts/install-test-tools.sh, as make test does", path)
	}
	return path
}

func moduleRoot(t T) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			t.Fatal("the test runs outside the module")
		}
		folder = parent
	}
}

func start(python, folder string, settings []string) (*Cloud, error) {
	address, err := programtest.FreeAddress()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	cloud := &Cloud{URL: "http://" + address, log: &programtest.Output{Limit: logSize}, ended: make(chan struct{})}
	cloud.command = exec.Command(python, "-c", launcher)
	cloud.command.Dir = folder
	cloud.command.Env = append(os.Environ(),
		"BIND_HOST="+host, "MINISTACK_HOST="+host, "GATEWAY_PORT="+port, "MINISTACK_REGION="+Region,
		"AWS_DEFAULT_REGION="+Region, "TMPDIR="+folder, "SFTP_ENABLED=0", "PYTHONDONTWRITEBYTECODE=1",
		// Functions in the local AWS call it at this address.
		"AWS_ENDPOINT_URL=http://"+address,
		// Prevent calls to AWS itself, even for credentials.
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true",
	)
	cloud.command.Env = append(cloud.command.Env, settings...)
	cloud.command.Stdout, cloud.command.Stderr = cloud.log, cloud.log
	cloud.command.WaitDelay = time.Second
	cloud.command.SysProcAttr = processGroup()
	started := make(chan error)
	go func() {
		// The kernel kills the process when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cloud.command.Start()
		started <- err
		if err == nil {
			_ = cloud.command.Wait() // ProcessState has the exit status
			close(cloud.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start the local AWS: %w", err)
	}
	if err := cloud.ready(); err != nil {
		_ = cloud.command.Process.Kill() // fails if it has already exited
		<-cloud.ended
		return nil, err
	}
	return cloud, nil
}

func (c *Cloud) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), await.Max)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/_ministack/ready", nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-c.ended:
			return fmt.Errorf("the local AWS exited:\n%s", c.log)
		case <-ctx.Done():
			return fmt.Errorf("the local AWS does not accept connections:\n%s", c.log)
		case <-again.C:
		}
	}
}

// stop asks the process to exit, and kills it if that takes too long.
func (c *Cloud) stop() error {
	err := c.command.Process.Signal(syscall.SIGTERM)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	select {
	case <-c.ended:
	case <-time.After(stopTime):
		_ = c.command.Process.Kill() // it may have just exited
		<-c.ended
	}
	return err
}

// show logs the process's output if the test failed.
func (c *Cloud) show(t T) {
	if t.Failed() {
		t.Logf("the output of the local AWS:\n%s", c.log)
	}
}

// Config returns the configuration of clients of the local AWS. They wait for responses, however
// long the local AWS stalls.
func (c *Cloud) Config() aws.Config { return patient(ConfigFor(c.URL)) }

// ConfigFor returns a configuration for clients of an endpoint, which is a local AWS or a proxy in front of it.
func ConfigFor(url string) aws.Config {
	return aws.Config{
		Region:       Region,
		BaseEndpoint: aws.String(url),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	}
}

// The last logSize bytes of the local AWS's log are kept.
const logSize = 64 << 10

// Environment returns variables that make a program's AWS clients use the local AWS.
func (c *Cloud) Environment() []string {
	return []string{
		"AWS_ENDPOINT_URL=" + c.URL, "AWS_REGION=" + Region, "AWS_DEFAULT_REGION=" + Region,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true",
	}
}
