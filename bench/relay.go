package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
)

// relayCommand is the argument with which this program starts itself as a relay.
const relayCommand = "bare-relay"

// startRelay starts the least that a gateway in Go can do: one goroutine per connection, which forwards each request
// with a Content-Length over a kept connection, and then the response.
func startRelay(ctx context.Context, upstream string) (relay target, stop func(), err error) {
	program, err := os.Executable()
	if err != nil {
		return target{}, nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return target{}, nil, err
	}
	defer listener.Close()
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		return target{}, nil, err
	}
	defer socket.Close()
	cmd := exec.CommandContext(ctx, program, relayCommand, upstream)
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{socket} // descriptor 3
	if err := cmd.Start(); err != nil {
		return target{}, nil, err
	}
	return target{"relay", listener.Addr().String(), cmd.Process.Pid}, func() {
		_ = cmd.Process.Kill() // fails if it has already exited
		_ = cmd.Wait()
	}, nil
}

// relay serves the connections of the inherited socket until the process is killed.
func relay(upstream string) error {
	listener, err := net.FileListener(os.NewFile(3, "socket"))
	if err != nil {
		return err
	}
	kept := &keptConns{address: upstream}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			_ = kept.relay(conn) // ends when the client disconnects
		}()
	}
}

type keptConn struct {
	net.Conn
	reader *bufio.Reader
}

type keptConns struct {
	address string
	mu      sync.Mutex
	idle    []*keptConn
}

func (k *keptConns) relay(conn net.Conn) error {
	reader := bufio.NewReader(conn)
	var message []byte
	for {
		var err error
		if message, err = readMessage(reader, message[:0]); err != nil {
			return err
		}
		to, err := k.take()
		if err != nil {
			return err
		}
		if _, err = to.Write(message); err == nil {
			message, err = readMessage(to.reader, message[:0])
		}
		if err != nil {
			to.Close()
			return err
		}
		k.put(to)
		if _, err = conn.Write(message); err != nil {
			return err
		}
	}
}

func (k *keptConns) take() (*keptConn, error) {
	k.mu.Lock()
	if last := len(k.idle) - 1; last >= 0 {
		defer k.mu.Unlock()
		conn := k.idle[last]
		k.idle = k.idle[:last]
		return conn, nil
	}
	k.mu.Unlock()
	conn, err := net.Dial("tcp", k.address)
	if err != nil {
		return nil, err
	}
	return &keptConn{conn, bufio.NewReader(conn)}, nil
}

func (k *keptConns) put(conn *keptConn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.idle = append(k.idle, conn)
}

// readMessage appends a request or a response that has a Content-Length.
func readMessage(reader *bufio.Reader, message []byte) ([]byte, error) {
	for length := 0; ; {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return message, err
		}
		message = append(message, line...)
		name, value, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(": "))
		if bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return message, fmt.Errorf("the relay read %q", line)
			}
		}
		if len(name) == 0 {
			start := len(message)
			message = append(message, make([]byte, length)...)
			_, err = io.ReadFull(reader, message[start:])
			return message, err
		}
	}
}
