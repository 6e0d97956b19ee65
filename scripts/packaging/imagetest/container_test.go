//go:build docker

package imagetest_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"cutroom/shared/testkit/await"
)

const (
	// label marks the tests' containers and images, so that scripts/test-docker.sh can remove leftovers
	// of a killed test.
	label = "cutroom.test"
)

func imageOf(name string) string { return name + ":" + cmp.Or(os.Getenv("TAG"), "latest") }

func docker(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := tryDocker(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tryDocker is docker for commands that may fail.
func tryDocker(ctx context.Context, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, await.Max)
	defer cancel()
	command := exec.CommandContext(ctx, "docker", arguments...)
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	command.WaitDelay = time.Second
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("docker %s: %w\n%s%s", strings.Join(arguments, " "), err, &out, &said)
	}
	return strings.TrimSpace(out.String()), nil
}

type container struct {
	t  *testing.T
	id string
}

// hardened lists the options with which every image must work.
var hardened = []string{"--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"}

func start(t *testing.T, image string, options, command []string) *container {
	t.Helper()
	arguments := append([]string{"run", "--detach", "--label", label}, hardened...)
	arguments = append(append(append(arguments, options...), image), command...)
	c := &container{t, docker(t, arguments...)}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if t.Failed() {
			t.Logf("the output of %s:\n%s", image, c.log())
		}
		if _, err := tryDocker(ctx, "rm", "--force", "--volumes", c.id); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *container) log() string {
	out, err := exec.Command("docker", "logs", "--tail", "200", c.id).CombinedOutput()
	return string(out) + fmt.Sprint(errorOr(err, ""))
}

func errorOr(err error, other string) any {
	if err != nil {
		return err
	}
	return other
}

func (c *container) address(port int) string {
	c.t.Helper()
	published := docker(c.t, "port", c.id, strconv.Itoa(port)+"/tcp")
	first, _, _ := strings.Cut(published, "\n")
	return first
}

// state returns a field of a container, given as a Docker template such as ".State.Health.Status".
func (c *container) state(field string) string {
	c.t.Helper()
	return docker(c.t, "inspect", "--format", "{{"+field+"}}", c.id)
}

// ready waits until a container's service is healthy and returns the URL of its published port.
func (c *container) ready(port int) (url string) {
	c.t.Helper()
	eventually(c.t, "the container is ready", func() bool {
		if c.state(".State.Running") != "true" {
			c.t.Fatal("the container has ended")
		}
		url = "http://" + c.address(port)
		return healthy(url)
	})
	return url
}

func healthy(url string) bool {
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(url + "/healthz")
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func (c *container) seenHealthy() {
	c.t.Helper()
	eventually(c.t, "Docker reports the container as healthy", func() bool {
		return c.state(".State.Health.Status") == "healthy"
	})
}

// stop sends SIGTERM, like Docker and ECS, and returns the exit code.
func (c *container) stop(grace time.Duration) int {
	c.t.Helper()
	docker(c.t, "stop", "--time", strconv.Itoa(int(grace.Seconds())), c.id)
	code, err := strconv.Atoi(c.state(".State.ExitCode"))
	if err != nil {
		c.t.Fatal(err)
	}
	return code
}

func (c *container) kill() { docker(c.t, "kill", c.id) }

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	await.Until(t, what, condition)
}

// gateway returns this machine's address in the containers' network.
func gateway(t *testing.T) string {
	t.Helper()
	subnet := docker(t, "network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Subnet}}")
	_, network, err := net.ParseCIDR(subnet)
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if own, ok := address.(*net.IPNet); ok && network.Contains(own.IP) {
			return own.IP.String()
		}
	}
	t.Fatalf("this machine has no address in %s, the network of containers", network)
	return ""
}

// reachable forwards connections from containers to a server that listens only on this machine's
// loopback address, and returns the address that the containers must use. The port is the same.
func reachable(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(gateway(t), port))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			from, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				go forward(t.Context(), from, address)
			}
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		await.Receive(t, "ended", ended)
	})
	return listener.Addr().String()
}
