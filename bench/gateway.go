package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/testkit/servertest"
)

const (
	// Latency is measured in gatewayRounds rounds. In each round, every target gets gatewayCalls requests of each
	// kind, one after another.
	gatewayCalls, gatewayRounds = 600, 5
	// Throughput is measured gatewayTurns times, for gatewayTime each. Meanwhile gatewayCallers clients with
	// keep-alive connections send requests concurrently.
	gatewayCallers = 64
	gatewayTime    = 2 * time.Second
	gatewayTurns   = 3
	openStreams    = 1000
	// The bars are a multiple of nginx's overhead, a fraction of nginx's throughput, and bytes per open stream.
	gatewayLatencyBar    = 1.3
	gatewayLargeBar      = 1.5
	gatewayThroughputBar = 0.7
	openStreamBar        = 40 << 10
)

const gatewayCatalog = `
inference:
  - {id: bench, routes: [chat], context_length: 8192, max_output_length: 4096, upstreams: [{url: "http://%s/v1", model: weights}]}
`

// gateway measures the gateway's overhead on requests to a model server that responds immediately,
// compared with nginx's overhead on the same requests. The client and the model server run on the
// same machine and are as simple as possible (see wire.go).
func (b *bench) gateway(ctx context.Context) error {
	upstream, err := newModelServer()
	if err != nil {
		return err
	}
	defer upstream.close()
	if err := b.gatewayLatencies(ctx, upstream); err != nil {
		return err
	}
	proxies, err := b.startProxies(ctx, upstream)
	if err != nil {
		return err
	}
	defer proxies.stop()
	relay, stop, err := startRelay(ctx, upstream.address())
	if err != nil {
		return err
	}
	defer stop()
	if err := b.gatewayThroughput(ctx, append(proxies.targets[1:3:3], relay)); err != nil {
		return err
	}
	if err := b.gatewayStreams(ctx, proxies.server, upstream, proxies.targets[2]); err != nil {
		return err
	}
	if err := b.gatewayFlow(ctx, proxies.targets[1:]); err != nil {
		return err
	}
	if err := b.gatewayTranslation(ctx, proxies.targets[2]); err != nil {
		return err
	}
	return b.gatewayLarge(ctx, upstream, proxies.targets[2])
}

// gatewayLatencies runs the client and the model server on one CPU and the proxies on another. Otherwise nginx would
// sometimes run on the client's CPU, where requests take a quarter of the time, and the ratio would depend on that.
func (b *bench) gatewayLatencies(ctx context.Context, upstream *modelServer) (err error) {
	if runtime.NumCPU() < 2 {
		return errors.New("two processors are needed")
	}
	if err := useProcessor(1); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, useProcessors()) }()
	proxies, err := b.startProxies(ctx, upstream)
	if err != nil {
		return err
	}
	defer proxies.stop()
	if err := useProcessor(0); err != nil {
		return err
	}
	for _, kind := range []struct {
		name, what string
		bar        float64
	}{
		{"whole", "gateway, added latency p50, one caller", gatewayLatencyBar},
		{"stream", "gateway, added time to first byte of a stream", gatewayLatencyBar},
		{"large", "gateway, added latency p50, 200 KB prompts", gatewayLargeBar},
	} {
		if err := b.gatewayLatency(ctx, proxies.targets, kind.name, kind.what, kind.bar); err != nil {
			return err
		}
	}
	return nil
}

type proxies struct {
	server *servertest.Server
	// targets are the model server itself, nginx and the gateway.
	targets []target
	stop    func()
}

func (b *bench) startProxies(ctx context.Context, upstream *modelServer) (proxies, error) {
	catalog, err := b.gatewayCatalog(upstream.address())
	if err != nil {
		return proxies{}, err
	}
	nginx, err := startNginx(ctx, filepath.Join(b.folder, "nginx"), upstream.address())
	if err != nil {
		return proxies{}, err
	}
	server, stop, err := b.serve(ctx, "gateway", "CUTROOM_CATALOG="+catalog, "CUTROOM_LOG_LEVEL=warn")
	if err != nil {
		nginx.stop()
		return proxies{}, err
	}
	return proxies{server, []target{
		{"direct", upstream.address(), 0},
		{"nginx", nginx.address, nginx.worker},
		{"gateway", strings.TrimPrefix(server.InferenceURL(), "http://"), server.PID()},
	}, func() {
		stop()
		nginx.stop()
	}}, nil
}

type target struct {
	name, address string
	// pid is the target's process, or 0 for this process.
	pid int
}

// gatewayCatalog writes the repository's catalog with the benchmark's model.
func (b *bench) gatewayCatalog(upstream string) (path string, err error) {
	return b.writeCatalog("gateway.yaml", gatewayCatalog, upstream)
}

// writeCatalog writes the repository's catalog with the given inference section.
func (b *bench) writeCatalog(name, inference, upstream string) (path string, err error) {
	source, err := os.ReadFile(filepath.Join("shared", "domain", "catalog", "catalog.yaml"))
	if err != nil {
		return "", err
	}
	media, _, ok := strings.Cut(string(source), "\ninference:")
	if !ok {
		return "", errors.New("the catalog has no inference side")
	}
	path = filepath.Join(b.folder, name)
	return path, os.WriteFile(path, fmt.Appendf([]byte(media), inference, upstream), 0o600)
}

func (b *bench) gatewayLatency(ctx context.Context, targets []target, kind, what string, bar float64) error {
	took := map[string][]time.Duration{}
	for range gatewayRounds {
		for _, target := range targets {
			c, err := dialWire(ctx, target.address)
			if err != nil {
				return err
			}
			for i := range gatewayCalls {
				first, err := c.call(kind)
				if err != nil {
					c.close()
					return fmt.Errorf("%s: %w", target.name, err)
				}
				if i >= gatewayCalls/10 { // the first requests warm up
					took[target.name] = append(took[target.name], first)
				}
			}
			c.close()
		}
	}
	direct := median(took["direct"])
	nginx, gateway := median(took["nginx"])-direct, median(took["gateway"])-direct
	b.table.add(row{
		what: what, measured: micro(gateway), floor: micro(nginx) + " nginx", ratio: ratio(gateway, nginx),
		bar:     fmt.Sprintf("%.1f x", bar),
		verdict: verdictOf(gateway.Seconds() <= bar*nginx.Seconds()),
	})
	return nil
}

func (b *bench) gatewayThroughput(ctx context.Context, targets []target) error {
	rates, busy := map[string][]float64{}, map[string][]time.Duration{}
	for range gatewayTurns {
		for _, target := range targets {
			before, err := processorTime(target.pid)
			if err != nil {
				return err
			}
			calls, took, err := wireCalls(ctx, target.address, "whole", gatewayCallers, gatewayTime)
			if err != nil {
				return fmt.Errorf("%s: %w", target.name, err)
			}
			after, err := processorTime(target.pid)
			if err != nil {
				return err
			}
			rates[target.name] = append(rates[target.name], float64(calls)/took.Seconds())
			busy[target.name] = append(busy[target.name], (after-before)/time.Duration(calls))
		}
	}
	middle := func(name string) float64 {
		slices.Sort(rates[name])
		return rates[name][len(rates[name])/2]
	}
	gateway, nginx := middle("gateway"), middle("nginx")
	b.table.add(row{
		what:     fmt.Sprintf("gateway, throughput at %d callers", gatewayCallers),
		measured: fmt.Sprintf("%.0f/s", gateway), floor: fmt.Sprintf("%.0f/s nginx", nginx),
		ratio: fmt.Sprintf("%.2f x", gateway/nginx),
		bar:   fmt.Sprintf("%.1f x", gatewayThroughputBar), verdict: verdictOf(gateway >= gatewayThroughputBar*nginx),
	})
	b.table.add(row{
		what: "  its CPU time per call", measured: micro(median(busy["gateway"])),
		floor: micro(median(busy["nginx"])) + " nginx",
		ratio: ratio(median(busy["gateway"]), median(busy["nginx"])), bar: "-", verdict: noBar,
	})
	b.table.add(row{
		what: "  and next to a bare relay in Go", measured: micro(median(busy["gateway"])),
		floor: micro(median(busy["relay"])) + " relay",
		ratio: ratio(median(busy["gateway"]), median(busy["relay"])), bar: "-", verdict: noBar,
	})
	return nil
}

// clockTick is the unit of CPU times in proc(5). It is the same on every Linux platform that Go supports.
const clockTick = 10 * time.Millisecond

func processorTime(pid int) (time.Duration, error) {
	own, _, err := processorTimes(pid)
	return own, err
}

func processorTimes(pid int) (own, children time.Duration, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// Skip the name in parentheses, which may contain any characters.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for i, field := range fields[11:15] { // user and system time of the process, then of its children
		ticks, err := strconv.Atoi(field)
		if err != nil {
			return 0, 0, err
		}
		if used := time.Duration(ticks) * clockTick; i < 2 {
			own += used
		} else {
			children += used
		}
	}
	return own, children, nil
}

// gatewayStreams keeps many streams open, each paused after its first chunk.
func (b *bench) gatewayStreams(ctx context.Context, server *servertest.Server, upstream *modelServer, to target) error {
	idle, err := memory(server.PID(), "VmRSS")
	if err != nil {
		return err
	}
	release := upstream.hold()
	defer release()
	for range openStreams {
		c, err := dialWire(ctx, to.address)
		if err != nil {
			return err
		}
		defer c.close()
		if err := c.open("stream"); err != nil {
			return err
		}
	}
	open, err := memory(server.PID(), "VmRSS")
	if err != nil {
		return err
	}
	each := (open - idle) / openStreams
	b.table.add(row{
		what:     fmt.Sprintf("gateway, %d open streams, each", openStreams),
		measured: fmt.Sprintf("%d KiB", each>>10), floor: mebibytes(idle) + " idle", ratio: "-",
		bar: fmt.Sprintf("%d KiB", openStreamBar>>10), verdict: verdictOf(each <= openStreamBar),
	})
	return nil
}

func micro(d time.Duration) string { return fmt.Sprintf("%d us", d.Microseconds()) }
