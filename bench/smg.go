package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// smgTime bounds the start of smg, which first waits for its model server.
const smgTime = 60 * time.Second

// startSMG starts smg, a router for model servers written in Rust, in front of one; ok is
// false where it is not installed (`pip install smg` in .tools/smg, or on the path).
func startSMG(ctx context.Context, folder, upstream string) (to target, stop func(), ok bool, err error) {
	path := filepath.Join(".tools", "smg", "bin", "smg")
	if _, err := os.Stat(path); err != nil {
		if path, err = exec.LookPath("smg"); err != nil {
			return target{}, nil, false, nil
		}
	}
	address, err := freeAddress()
	if err != nil {
		return target{}, nil, false, err
	}
	metrics, err := freeAddress()
	if err != nil {
		return target{}, nil, false, err
	}
	_, port, _ := net.SplitHostPort(address) // it was made of both
	_, metricsPort, _ := net.SplitHostPort(metrics)
	cmd := exec.CommandContext(ctx, path, "launch", "--host", "127.0.0.1", "--port", port, "--worker-urls", "http://"+upstream,
		"--policy", "round_robin", "--backend", "openai", "--history-backend", "none", "--disable-tokenizer-autoload",
		"--disable-load-monitoring", "--prometheus-port", metricsPort, "--log-level", "error", "--log-dir", folder)
	said, err := os.Create(filepath.Join(folder, "smg.log"))
	if err != nil {
		return target{}, nil, false, err
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		return target{}, nil, false, err
	}
	stop = func() {
		_ = cmd.Process.Kill() // fails when it is gone already
		_ = cmd.Wait()
	}
	for until := time.Now().Add(smgTime); ; time.Sleep(50 * time.Millisecond) {
		if answersChats(ctx, address) {
			return target{"smg", address, cmd.Process.Pid}, stop, true, nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			stop()
			text, _ := os.ReadFile(said.Name()) // without it the error says less
			return target{}, nil, false, errors.Join(ctx.Err(), fmt.Errorf("smg does not answer: %.500s", text))
		}
	}
}

// answersChats reports whether a server answers a chat.
func answersChats(ctx context.Context, address string) bool {
	w, err := dialWire(ctx, address)
	if err != nil {
		return false
	}
	defer w.close()
	_, err = w.call("whole")
	return err == nil
}

// freeAddress returns an address of this machine that nobody listens on now.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}
