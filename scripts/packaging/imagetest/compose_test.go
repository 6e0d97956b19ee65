//go:build docker

package imagetest_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
	"cutroom/shared/testkit/servertest"
)

// compose is a Docker Compose project that is removed when its test ends.
type compose struct {
	t       *testing.T
	command []string
	env     []string
	url     string
	key     string
}

// newCompose prepares a project from compose.yaml, on free ports.
func newCompose(t *testing.T) *compose {
	t.Helper()
	// Compose is a Docker plugin or, in older versions, a separate program.
	command := []string{"docker", "compose"}
	if exec.Command("docker", "compose", "version").Run() != nil {
		command = []string{"docker-compose"}
	}
	project := "cutroom-test-" + strings.ToLower(rand.Text())
	media, err := programtest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	inference, err := programtest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(media, ":")
	_, inferencePort, _ := strings.Cut(inference, ":")
	c := &compose{
		t: t, url: "http://" + media, command: append(command, "--file", "../../../compose.yaml", "--project-name", project),
		env: append(os.Environ(), "CUTROOM_IMAGE="+imageOf("cutroom"), "ENGINE_IMAGE="+imageOf("cutroom-engine"),
			"CUTROOM_PORT="+port, "CUTROOM_INFERENCE_PORT="+inferencePort)}
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := c.try(context.WithoutCancel(t.Context()), "logs", "--no-color")
			t.Logf("the project's output:\n%s", out)
		}
		if out, err := c.try(context.WithoutCancel(t.Context()), "down", "--volumes", "--timeout", "10"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	return c
}

func (c *compose) try(ctx context.Context, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, await.Max)
	defer cancel()
	command := exec.CommandContext(ctx, c.command[0], append(c.command[1:], arguments...)...)
	command.Env = c.env
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	command.WaitDelay = time.Second
	err := command.Run()
	return out.String(), err
}

func (c *compose) run(arguments ...string) string {
	c.t.Helper()
	out, err := c.try(c.t.Context(), arguments...)
	if err != nil {
		c.t.Fatalf("compose %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return out
}

func (c *compose) ready() *servertest.Client {
	c.t.Helper()
	eventually(c.t, "the server of the project is ready", func() bool { return healthy(c.url) })
	// The server prints the address that works on the host.
	if said := c.run("logs", "cutroom"); !strings.Contains(said, c.url) {
		c.t.Errorf("the output does not contain %s:\n%s", c.url, said)
	}
	if c.key == "" {
		c.key = docker(c.t, "exec", c.container("cutroom"), "cutroom", "keys", "create", "--account", account)
	}
	return &servertest.Client{URL: c.url, Key: c.key}
}

func (c *compose) container(service string) string {
	return strings.TrimSpace(c.run("ps", "--all", "--quiet", service))
}

// The server is stopped and restarted, then killed during a job, which continues.
func TestComposeSurvivesKill(t *testing.T) {
	t.Parallel()
	c := newCompose(t)
	c.run("up", "--detach")
	client := c.ready()
	id := submit(t, client, "comic book")
	completed(t, client, id)
	if found := c.run("exec", "-T", "cutroom", "cutroom", "doctor"); !strings.Contains(found, "/data") {
		t.Errorf("doctor prints\n%s", found)
	}

	c.run("stop")
	if code := docker(t, "inspect", "--format", "{{.State.ExitCode}}", c.container("cutroom")); code != "0" {
		t.Errorf("after a stop signal the server exited with %s", code)
	}
	c.run("start")
	client = c.ready()
	completed(t, client, id)

	interrupted := submit(t, client, "a watercolor painting")
	processing(t, client, interrupted)
	// This simulates an out-of-memory kill, after which the container is restarted. docker kill
	// would prevent the restart.
	process := docker(t, "inspect", "--format", "{{.State.Pid}}", c.container("cutroom"))
	if out, err := exec.Command("kill", "-9", process).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	eventually(t, "the container was restarted", func() bool {
		return docker(t, "inspect", "--format", "{{.RestartCount}} {{.State.Running}}", c.container("cutroom")) == "1 true"
	})
	client = c.ready()
	completed(t, client, interrupted)
	// A container that is recreated from another version of the image has the same data.
	c.run("up", "--detach", "--force-recreate")
	completed(t, c.ready(), id)
}
