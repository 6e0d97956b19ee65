package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cutroom/shared/testkit/lossytest"
	"cutroom/shared/testkit/programtest"
	"cutroom/shared/testkit/servertest"
)

const (
	// Frames alternate between the server and the direct connection: videoRounds rounds of videoSeconds each.
	videoRounds, videoSeconds = 3, 10
	// videoBar is the maximum delay that the server adds to a frame.
	videoBar = 25 * time.Millisecond
	firstBar = time.Second
	// lossSeconds is how long the network drops packets. settleBar is the maximum time from the end of the loss until
	// the latency is normal again.
	lossSeconds = 8
	settleBar   = 2 * time.Second
	// videoTime is the timeout for a browser task.
	videoTime = 5 * time.Minute
)

// lossBars maps a fraction of dropped packets to the maximum fraction of missing frames.
var lossBars = []struct{ drop, missing float64 }{{.01, .1}, {.05, .5}}

// videoFiles lists the files of the benchmark's page. Some of them are also files of the page /realtime.
var videoFiles = map[string]string{
	"page.html": "bench/video/page.html", "page.js": "bench/video/page.js",
	"pattern.js": "shared/service/api/realtime/pattern.js", "marker.js": "shared/service/api/realtime/marker.js",
	"room.js": "shared/service/api/realtime/room.js",
}

// seen is the page's report about a period.
type seen struct {
	// First is the time until the first frame is shown. Latencies holds the times of the other
	// frames from drawing to display. Both are in ms.
	First     float64
	Latencies []float64
	Drawn     int
}

func (s seen) late() []time.Duration {
	late := make([]time.Duration, len(s.Latencies))
	for i, one := range s.Latencies {
		late[i] = milliseconds(one)
	}
	return late
}

func milliseconds(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

// missing returns the fraction of drawn frames that never appeared.
func (s seen) missing() float64 {
	return 1 - min(1, float64(len(s.Latencies))/float64(max(s.Drawn, 1)))
}

// video measures live video over WebRTC: the delay of a browser's frames, the effect of packet
// loss, and the CPU time of a stream.
func (b *bench) video(ctx context.Context) error {
	for _, measure := range []func(context.Context) error{b.videoCost, b.videoLatency, b.videoLoss} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) serveVideo(ctx context.Context, address string, settings ...string) (*servertest.Server, func(), error) {
	tiers := filepath.Join(b.folder, "tiers.yaml")
	if err := os.WriteFile(tiers, []byte("default: {}\ndev: {}\n"), 0o600); err != nil {
		return nil, nil, err
	}
	return b.serve(ctx, "video", append([]string{"CUTROOM_TIERS=" + tiers, "CUTROOM_RTC_ADDR=" + address}, settings...)...)
}

// streamURL returns the URL for sessions without a prompt, which return frames unchanged.
func streamURL(server *servertest.Server) string {
	query := url.Values{"model": {"gen-latest"}, "api_key": {servertest.Key}}
	return "ws" + strings.TrimPrefix(server.URL(), "http") + "/v1/stream?" + query.Encode()
}

// videoLatency sends a browser's frames through the server. The floor sends them from browser to browser.
func (b *bench) videoLatency(ctx context.Context) error {
	server, stop, err := b.serveVideo(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer stop()
	var report struct{ Direct, Served []seen }
	if err := b.browse(ctx, map[string]any{
		"do": "latency", "url": streamURL(server), "rounds": videoRounds, "seconds": videoSeconds,
	}, nil, &report); err != nil {
		return err
	}
	var served, direct, first, floor []time.Duration
	var missing, lost float64
	for i := range report.Served {
		served, direct = append(served, report.Served[i].late()...), append(direct, report.Direct[i].late()...)
		first = append(first, milliseconds(report.Served[i].First))
		floor = append(floor, milliseconds(report.Direct[i].First))
		missing += report.Served[i].missing() / videoRounds
		lost += report.Direct[i].missing() / videoRounds
	}
	more := median(served) - median(direct)
	b.table.add(row{
		what:     "picture of 640x360 drawn, passed through and shown by a browser at 25/s, p50 (load " + load() + ")",
		measured: short(median(served)), floor: short(median(direct)) + " browser to browser", ratio: signed(more),
		bar: signed(videoBar), verdict: verdictOf(more <= videoBar),
	})
	last, lastDirect := quantile(served, .99), quantile(direct, .99)
	b.table.add(row{
		what: "  p99", measured: short(last), floor: short(lastDirect), ratio: ratio(last, lastDirect), bar: "-", verdict: noBar,
	})
	b.table.add(row{
		what: "  pictures never shown", measured: percent(missing), floor: percent(lost), ratio: "-", bar: "-",
		verdict: noBar,
	})
	b.table.add(row{
		what: "first picture after connecting", measured: short(median(first)), floor: short(median(floor)) + " browser to browser",
		ratio: ratio(median(first), median(floor)), bar: short(firstBar), verdict: verdictOf(median(first) <= firstBar),
	})
	return nil
}

func (b *bench) videoLoss(ctx context.Context) error {
	address, err := programtest.FreeAddress()
	if err != nil {
		return err
	}
	server, stop, err := b.serveVideo(ctx, address, "CUTROOM_RTC_PUBLIC=127.0.0.2")
	if err != nil {
		return err
	}
	defer stop()
	relay, err := lossytest.NewRelay("127.0.0.2"+strings.TrimPrefix(address, "127.0.0.1"), address, 1)
	if err != nil {
		return err
	}
	defer relay.Close()
	var report []struct {
		Drop           float64
		Before, During seen
		Settled        float64
	}
	drops := []float64{}
	for _, bar := range lossBars {
		drops = append(drops, bar.drop)
	}
	if err := b.browse(ctx, map[string]any{
		"do": "loss", "url": streamURL(server), "drops": drops, "seconds": lossSeconds,
	}, relay, &report); err != nil {
		return err
	}
	for i, one := range report {
		bar := lossBars[i]
		missing := 1 - float64(len(one.During.Latencies))/float64(max(1, len(one.Before.Latencies)))
		b.table.add(row{
			what:     fmt.Sprintf("missing pictures with %s of packets lost each way (load %s)", percent(bar.drop), load()),
			measured: percent(max(0, missing)), floor: "0 % without loss", ratio: "-", bar: percent(bar.missing),
			verdict: verdictOf(missing <= bar.missing),
		})
		before, during := one.Before.late(), one.During.late()
		b.table.add(row{
			what: "  latency during the loss, p50", measured: short(median(during)), floor: short(median(before)) + " without loss",
			ratio: ratio(median(during), median(before)), bar: "-", verdict: noBar,
		})
		settled := milliseconds(one.Settled)
		b.table.add(row{
			what: "  until the latency is normal", measured: short(settled), floor: "-", ratio: "-", bar: short(settleBar),
			verdict: verdictOf(settled <= settleBar),
		})
	}
	return nil
}

func signed(d time.Duration) string {
	if d < 0 {
		return short(d)
	}
	return "+" + short(d)
}

// load returns the load average of the last minute. It is printed because times mean little on a busy machine.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// browse makes a browser carry out an order, and returns the page's report. If there is a relay,
// the page sets its loss rate.
func (b *bench) browse(ctx context.Context, order map[string]any, relay *lossytest.Relay, report any) error {
	ctx, cancel := context.WithTimeout(ctx, videoTime)
	defer cancel()
	reports := make(chan []byte, 1)
	site := httptest.NewServer(videoSite(order, relay, reports))
	defer site.Close()
	profile, err := os.MkdirTemp(b.folder, "browser-")
	if err != nil {
		return err
	}
	browser := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--autoplay-policy=no-user-gesture-required", "--allow-loopback-in-peer-connection",
		"--disable-features=WebRtcHideLocalIpsWithMdns", "--user-data-dir="+profile, "--remote-debugging-port=0",
		site.URL+"/page.html")
	browser.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	browser.Cancel = func() error { return syscall.Kill(-browser.Process.Pid, syscall.SIGKILL) }
	browser.WaitDelay = 5 * time.Second
	if err := browser.Start(); err != nil {
		return err
	}
	defer func() {
		cancel()
		_ = browser.Wait() // the browser was killed
	}()
	select {
	case text := <-reports:
		var failed struct{ Failure string }
		if bytes.HasPrefix(text, []byte("{")) && json.Unmarshal(text, &failed) == nil && failed.Failure != "" {
			return errors.New("in the browser: " + failed.Failure)
		}
		return json.Unmarshal(text, report)
	case <-ctx.Done():
		return fmt.Errorf("the browser sent no report: %w", context.Cause(ctx))
	}
}

// videoSite serves the page and its order, and receives its reports.
func videoSite(order map[string]any, relay *lossytest.Relay, reports chan<- []byte) http.Handler {
	site := http.NewServeMux()
	for name, path := range videoFiles {
		site.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) })
	}
	site.HandleFunc("GET /order", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(order) // fails if the browser is gone
	})
	site.HandleFunc("POST /network", func(_ http.ResponseWriter, r *http.Request) {
		drop, _ := strconv.ParseFloat(r.URL.Query().Get("drop"), 64)
		relay.Set(lossytest.Faults{Drop: drop}, lossytest.Faults{Drop: drop})
	})
	site.HandleFunc("POST /report", func(_ http.ResponseWriter, r *http.Request) {
		var text bytes.Buffer
		if _, err := text.ReadFrom(r.Body); err == nil {
			reports <- text.Bytes()
		}
	})
	return site
}
