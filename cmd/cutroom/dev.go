package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"cutroom/cmd/cutroom/command"
	"cutroom/shared/app/engineconfig"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/platform/memorylimit"
	"cutroom/shared/service/console"
)

type devCommand struct {
	dataFlag
	tiersFlag
	catalogFlags
	enhanceFlags
	inferenceFlags
	callerFlags
	webhookFlags
	signingFlags
	Addr        string       `env:"CUTROOM_ADDR" default:"127.0.0.1:8080" help:"Address of the media API; :8080 opens it to other machines (${env})."`
	RTCAddr     string       `env:"CUTROOM_RTC_ADDR" default:"off" help:"Address for live video over WebRTC (UDP and TCP), such as 127.0.0.1:8082; auto uses 127.0.0.1:8082 if its port is free and libvpx is installed; off disables it (${env})."`
	RTCPublic   []string     `env:"CUTROOM_RTC_PUBLIC" help:"Public IP addresses for clients of live video, separated by commas; by default this machine's addresses (${env})."`
	RTCTURN     []string     `name:"rtc-turn" env:"CUTROOM_RTC_TURN" help:"URLs of TURN servers for clients of live video, such as turns:turn.example.com:443?transport=tcp, separated by commas (${env})."`
	RTCSecret   string       `name:"rtc-turn-secret" env:"CUTROOM_RTC_TURN_SECRET" help:"Secret shared with the TURN servers, at least 16 bytes (${env})."`
	DevKey      string       `env:"CUTROOM_DEV_KEY" help:"Permanent key of the account dev; generated and kept in the data folder if not set (${env})."`
	Secret      string       `env:"CUTROOM_SECRET" help:"Secret that signs page cursors, upload URLs, links to results and webhooks, at least 16 bytes; generated and kept in the data folder if not set (${env})."`
	MaxUpload   setting.Size `env:"CUTROOM_MAX_UPLOAD" default:"512MiB" help:"Maximum size of an uploaded file (${env})."`
	DiskReserve setting.Size `env:"CUTROOM_DISK_RESERVE" help:"Disk space that uploads and new records leave free; by default 2 percent of the disk or 1GiB, whichever is more, but at most 10 percent (${env})."`
	Workers     int          `env:"CUTROOM_WORKERS" default:"0" help:"Number of concurrent video edits, and also of concurrent image edits; 0 means half of the processors, or 1 with an engine server (${env})."`
	Origins     []string     `name:"cors-origins" env:"CUTROOM_CORS_ORIGINS" default:"*" help:"Origins whose pages may call the server, separated by commas; * allows all (${env})."`
	Engine      string       `env:"CUTROOM_ENGINE" default:"preview" help:"Engine for media: preview, the built-in engine on the CPU; the URL of an engine server on this machine, such as http://127.0.0.1:8090; openai:URL, an OpenAI-compatible server for videos and images; or comfyui:URL, a ComfyUI server (${env})."`
	LiveEngine  string       `env:"CUTROOM_LIVE_ENGINE" help:"Engine for live video: preview, or the URL of an engine server; by default the same as --engine (${env})."`
	EngineKey   string       `env:"CUTROOM_ENGINE_KEY" help:"API key for OpenAI-compatible servers, or for a proxy in front of ComfyUI (${env})."`
	LogLevel    slog.Level   `env:"CUTROOM_LOG_LEVEL" default:"info" help:"Minimum log level: debug, info (one line per request), warn or error; on a terminal, successful reads are logged only at debug (${env})."`

	// readAlong is set if a person is reading the log.
	readAlong bool
}

func (c *devCommand) Validate() error {
	if c.Workers < 0 || c.Workers > 256 {
		return fmt.Errorf("CUTROOM_WORKERS: must be from 0 to 256, not %d", c.Workers)
	}
	origins, err := setting.Origins(c.Origins)
	if err != nil {
		return err
	}
	c.Origins = origins
	if _, err := newCallers(c.TrustedProxies); err != nil {
		return err
	}
	if c.Secret != "" && len(c.Secret) < minSecret {
		return fmt.Errorf("CUTROOM_SECRET: must be at least %d bytes long", minSecret)
	}
	if c.Data == "" {
		return fmt.Errorf("CUTROOM_DATA: must not be empty")
	}
	if c.Addr == "" {
		return fmt.Errorf("CUTROOM_ADDR: must not be empty")
	}
	if c.InferenceAddr == "" {
		return fmt.Errorf("CUTROOM_INFERENCE_ADDR: must not be empty")
	}
	if _, ok := console.Origin(c.PublicInferenceURL); c.PublicInferenceURL != "" && !ok {
		return fmt.Errorf("CUTROOM_PUBLIC_INFERENCE_URL: %q must be a URL such as https://llm.example.com",
			c.PublicInferenceURL)
	}
	return nil
}

func (c *devCommand) Run(ctx context.Context, out *command.Invocation) error {
	memorylimit.Set()
	httpserver.SpareProcessor()
	c.readAlong = out.ShowsErr()
	logger := newLogger(out, c.LogLevel)
	machine, err := clocksOfMachine()
	if err != nil {
		return err
	}
	server, err := newServer(ctx, c, machine, logger)
	if err != nil {
		return err
	}
	defer server.close()
	if err := c.announce(out, server); err != nil {
		return err
	}
	if err := server.run(ctx); err != nil || out.JSON {
		return err
	}
	fmt.Fprintln(out.Out, "Stopped. Jobs and results are kept, and jobs continue at the next start.")
	return nil
}

// workers returns the number of jobs that a lane runs concurrently.
func (c *devCommand) workers() int {
	return cmp.Or(c.Workers, engineconfig.Parse(c.Engine).Slots())
}

// spare returns the number of extra slots of a lane, for accounts that use none of its other slots. It is 0 with
// engine servers. Otherwise it is 2, so that two accounts cannot block all others.
func (c *devCommand) spare() int {
	if engineconfig.Parse(c.Engine).BuiltIn() {
		return 2
	}
	return 0
}

func inEachLane(n int) map[job.Lane]int {
	return map[job.Lane]int{job.VideoLane: n, job.ImageLane: n}
}
