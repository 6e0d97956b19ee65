// Command realtime serves realtime sessions (/v1/stream) as a separate program. Instances that
// share a record store count an account's sessions across all of them.
//
// It keeps records in DynamoDB and reads images from S3, as configured by a deployment. If CUTROOM_DATA is set, it
// uses the data folder of a server on the same machine instead. CUTROOM_LIVE_ENGINE selects the preview engine or the
// URLs of engine servers, separated by commas. CUTROOM_RTC_ADDR and related settings add live video over WebRTC
// (docs/settings.md). CUTROOM_PEER_ADDR is the address for other instances, so that each instance can forward to any
// room. If CUTROOM_PUBLIC_URL, the URL of the media API, is set, it serves the page /realtime for trying sessions.
//
// With -health it only checks the health of the program at CUTROOM_ADDR and exits with 0 or 1.
// Containers that have no other program for a health check use this.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"cutroom/shared/app/engineconfig"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/session"
	"cutroom/shared/domain/usage"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/platform/memorylimit"
	"cutroom/shared/platform/signals"
	"cutroom/shared/service/api"
	"cutroom/shared/service/realtime"
)

// shutdownTime is how long running requests may take to finish after the sessions have ended.
const shutdownTime = 5 * time.Second

const defaultAddress = ":8080"

func main() {
	health := flag.Bool("health", false, "check the health of the running program, and exit with 0 or 1")
	flag.Parse()
	ctx, stop := signals.Context()
	var err error
	if *health {
		err = httpserver.AskHealth(ctx, cmp.Or(os.Getenv("CUTROOM_ADDR"), defaultAddress))
	} else {
		memorylimit.Set()
		err = run(ctx, setting.NewEnvironment(os.Getenv), slog.New(slog.NewJSONHandler(os.Stdout, nil)))
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "realtime:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, env *setting.Environment, logger *slog.Logger) error {
	httpserver.SpareProcessor()
	catalog, tiers, origins := env.Catalog(), env.Tiers(), httpserver.Origins(env.Origins())
	address := cmp.Or(env.Optional("CUTROOM_ADDR"), defaultAddress)
	media := strings.TrimSuffix(env.Optional("CUTROOM_PUBLIC_URL"), "/")
	live, err := engineconfig.NewLive(env.Optional("CUTROOM_LIVE_ENGINE"), "")
	if err != nil {
		return err
	}
	clock, err := boottime.Open()
	if err != nil {
		return err
	}
	kept, err := openStores(ctx, env, clock)
	if err := errors.Join(err, env.Err()); err != nil {
		return err
	}
	defer kept.close()
	tools, err := ffmpeg.Find(ctx, catalog.Limits)
	if err != nil {
		return err
	}
	transport, err := openWebRTC(ctx, env, tools, origins, logger)
	if err != nil {
		return err
	}
	defer transport.Close() // fails if already closed
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("CUTROOM_ADDR: %w", err)
	}
	defer listener.Close() // fails if the server has already closed it
	peer, err := peerAddress(env.Optional("CUTROOM_PEER_ADDR"), listener)
	if err != nil {
		return err
	}
	sessions := session.NewInstance(session.Config{Store: kept.sessions, Uptime: clock.Now, NewID: rand.Text,
		Logger: logger, Address: peer})
	writer := usage.NewWriter(usage.WriterConfig{Store: kept.usage, NewID: rand.Text, Logger: logger})
	budgets := budget.NewManager(budget.ManagerConfig{
		Store: kept.budgets, Machine: clock, Now: time.Now, NewID: rand.Text, Logger: logger,
	})
	server := realtime.New(realtime.Config{
		Catalog: catalog, Authenticator: credential.NewAuthenticator(kept.keys, tiers, time.Now), Keys: kept.keys,
		Sessions: sessions, Files: kept.files, Blobs: kept.blobs, Usage: writer,
		Budgets: budgets, Engine: live, Pictures: tools, Origins: origins, Now: time.Now,
		WebRTC: transport.For(), Logger: logger,
	})
	var page http.Handler
	if media != "" {
		page = api.New(api.Config{
			Catalog: catalog, Origins: origins, Logger: logger,
			SessionRoutes: api.SessionRoutes{MediaURL: media, LiveVideo: transport != nil},
		}, api.RealtimePage)
	}
	surface := httpserver.Surface{
		Server:   httpserver.New(httpserver.Config{Logger: logger, Handler: handler(server, sessions, page)}),
		Listener: listener,
	}
	logger.Info("serving", "address", listener.Addr().String(), "peer", peer)
	return serve(ctx, surface, server, writer, budgets)
}

// handler serves sessions, the page for trying sessions (unless page is nil), and /healthz, which
// fails while no session can be opened.
func handler(server *realtime.Server, sessions *session.Instance, page http.Handler) http.Handler {
	mux := http.NewServeMux()
	if page != nil {
		mux.Handle("/realtime", page)
	}
	for _, path := range realtime.Paths() {
		mux.Handle(path, server)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if !sessions.Ready() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	return mux
}

// serve serves until the context ends and then stops in order: it accepts no new sessions, closes
// the open sessions with a message, and records their usage.
func serve(ctx context.Context, surface httpserver.Surface, server *realtime.Server, writer *usage.Writer,
	budgets *budget.Manager) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	var sessions, rest sync.WaitGroup
	sessions.Go(func() { server.Run(background) })
	rest.Go(func() { writer.Run(writing) })
	rest.Go(func() { budgets.Run(writing) })
	err := httpserver.Run(ctx, shutdownTime, func() { stop(); sessions.Wait() }, surface)
	stopWriting()
	rest.Wait()
	return err
}
