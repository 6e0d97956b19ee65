package awstest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
)

// Local is a deployment made by `make local-aws` on this machine, with its local AWS and worker.
type Local struct {
	*Cloud
	Stage string
	// Media and Inference are the URLs of the deployed APIs. Key is an admin key of account acme.
	Media, Inference, Key string
	// Said is the standard output of `make local-aws`.
	Said string
	// Did is the standard error of `make local-aws`.
	Did    string
	Folder string

	root    string
	setting []string
}

// StartLocal runs `make local-aws` with its own data folder and ports. The deployment is stopped
// when the test ends. If the variable LOCAL_AWS is set, the data folder is created in that folder,
// so that anything left behind by a killed test can be stopped.
func StartLocal(t T, stage string) *Local {
	t.Helper()
	address, err := programtest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	folder := os.Getenv("LOCAL_AWS")
	if folder == "" {
		folder = t.TempDir()
	}
	folder = filepath.Join(folder, stage)
	_, port, _ := strings.Cut(address, ":")
	l := &Local{
		Cloud: &Cloud{URL: "http://" + address}, Stage: stage, Folder: folder, root: moduleRoot(t),
		setting: []string{"LOCAL_AWS=" + folder, "LOCAL_AWS_PORT=" + port, "STAGE=" + stage},
	}
	t.Cleanup(func() {
		if _, err := l.Make(context.Background(), "local-aws-stop"); err != nil {
			t.Errorf("%v", err)
		}
	})
	if err := l.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	return l
}

// Start runs `make local-aws` again, which deploys changes.
func (l *Local) Start(ctx context.Context) (err error) {
	if l.Said, l.Did, err = l.make(ctx, "local-aws"); err != nil {
		return err
	}
	for name, value := range map[string]*string{"media service": &l.Media, "inference gateway": &l.Inference, "key": &l.Key} {
		found := regexp.MustCompile(`(?m)^ *` + name + ` +(\S+)$`).FindStringSubmatch(l.Said)
		if found == nil {
			return fmt.Errorf("make local-aws does not print the %s: %s", name, l.Said)
		}
		*value = found[1]
	}
	return nil
}

// Command returns a command that runs a Makefile target with variables such as "FUNCTION=files", in
// the environment of a shell that is configured for AWS.
func (l *Local) Command(ctx context.Context, target string, variables ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "make", slices.Concat([]string{"--no-print-directory", target}, l.setting, variables)...)
	command.Dir = l.root
	// These variables must not reach the functions.
	command.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+l.URL, "AWS_ENDPOINT_URL_S3="+l.URL, "AWS_REGION=us-west-2",
		"AWS_PROFILE=none", "CUTROOM_FAMILY=other", "CUTROOM_MAX_UPLOAD=1")
	command.WaitDelay = 10 * time.Second
	return command
}

// Make runs a Makefile target and returns its standard output. If it fails, the error contains the output.
func (l *Local) Make(ctx context.Context, target string, variables ...string) ([]byte, error) {
	out, _, err := l.make(ctx, target, variables...)
	return []byte(out), err
}

func (l *Local) make(ctx context.Context, target string, variables ...string) (out, errors string, err error) {
	ctx, cancel := context.WithTimeout(ctx, await.Max)
	defer cancel()
	command := l.Command(ctx, target, variables...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", "", fmt.Errorf("make %s: %w\n%s%s", target, err, &stdout, &stderr)
	}
	return stdout.String(), stderr.String(), nil
}
