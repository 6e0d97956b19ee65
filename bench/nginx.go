package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const nginxConfig = `
daemon off;
worker_processes 1;
error_log stderr error;
pid %[1]s/pid;
events { worker_connections 8192; }
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	keepalive_requests 1000000;
	client_body_buffer_size 512k;
	upstream model { server %[3]s; keepalive 64; keepalive_requests 1000000; }
	server {
		listen %[2]s;
		location / {
			proxy_pass http://model;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_buffering off;
		}
	}
}
`

const nginxTime = 10 * time.Second

type nginxProxy struct {
	address string
	worker  int
	cmd     *exec.Cmd
}

func startNginx(ctx context.Context, folder, upstream string) (*nginxProxy, error) {
	path, err := exec.LookPath("nginx")
	if err != nil {
		// An ordinary user's PATH often lacks /usr/sbin.
		if path, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return nil, errors.New("nginx, which the floor needs, is not installed")
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	// nginx inherits the open socket, because another program could take a released port.
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	address := listener.Addr().String()
	config := filepath.Join(folder, "nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, nginxConfig, folder, address, upstream), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, "-p", folder, "-c", config)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{socket} // descriptor 3
	cmd.Env = append(os.Environ(), "NGINX=3;")
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	proxy := &nginxProxy{address: address, cmd: cmd}
	// The socket accepts connections before nginx does, so wait until nginx has started its worker.
	for until := time.Now().Add(nginxTime); ; time.Sleep(10 * time.Millisecond) {
		if proxy.worker, err = onlyChild(cmd.Process.Pid); err == nil {
			return proxy, nil
		}
		if time.Now().After(until) {
			proxy.stop()
			return nil, fmt.Errorf("nginx has no worker: %w", err)
		}
	}
}

func (p *nginxProxy) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails if nginx has already exited
	_ = p.cmd.Wait()
}

func onlyChild(pid int) (int, error) {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", pid))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(children)))
}
