package ffmpeg_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/testkit/await"
)

func endless(folder string) ffmpeg.Command {
	return ffmpeg.Command{
		Folder: folder,
		Args:   append([]string{"-filter_complex", "testsrc2=s=320x240[v]", "-map", "[v]"}, append(encode, "result.mp4")...),
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	command := endless(t.TempDir())
	child := 0
	command.Progress = func(time.Duration) {
		if children := childrenOf(t, os.Getpid()); child == 0 && len(children) > 0 {
			child = children[0]
		}
		cancel()
	}
	if err := find(t).Run(ctx, command); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left := childrenOf(t, os.Getpid()); len(left) > 0 {
		t.Errorf("processes %v remain", left)
	}
	if child != 0 && !errors.Is(syscall.Kill(-child, 0), syscall.ESRCH) {
		t.Errorf("process group %d remains", child)
	}
}

// This environment variable turns the test binary into the program that is killed.
const role = "CUTROOM_TEST_RUN_ENDLESSLY"

func TestKilledProgramKillsItsChildren(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux supports this")
	}
	if folder := os.Getenv(role); folder != "" {
		runEndlessly(t, folder)
		return
	}
	program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledProgramKillsItsChildren$")
	program.Env = append(os.Environ(), role+"="+t.TempDir())
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait()
	waitForEnd(t, number(line))
}

func runEndlessly(t *testing.T, folder string) {
	said := false
	command := endless(folder)
	command.Progress = func(time.Duration) {
		if !said {
			said = true
			fmt.Println(childrenOf(t, os.Getpid())[0])
		}
	}
	t.Error(find(t).Run(t.Context(), command))
}

func number(text string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(text))
	return n
}

// childrenOf reads every process's stat, because some systems cannot list a process's children.
func childrenOf(t *testing.T, parent int) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var children []int
	for _, path := range stats {
		if fields := afterName(path); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			children = append(children, number(filepath.Base(filepath.Dir(path))))
		}
	}
	return children
}

// afterName returns the fields after the name in /proc/PID/stat: the state, the parent and so on.
// It returns nil if the process has exited.
func afterName(path string) []string {
	stat, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
}

// waitForEnd waits until a process has exited or is a zombie.
func waitForEnd(t *testing.T, pid int) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("%d is not a process of a test", pid)
	}
	await.Until(t, fmt.Sprintf("process %d has exited", pid), func() bool {
		fields := afterName(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || len(fields) > 0 && fields[0] == "Z"
	})
}
