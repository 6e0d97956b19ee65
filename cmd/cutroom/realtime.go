package main

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/app/webrtc"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/session"
	"cutroom/shared/domain/usage"
	"cutroom/shared/engine"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/realtime"
)

type sessions struct {
	server   *realtime.Server
	instance *session.Instance
	records  *sqlite.Sessions
	webrtc   *webrtc.Transport
}

type sessionParts struct {
	now           func() time.Time
	records       *sqlite.DB
	catalog       *catalog.Catalog
	authenticator *credential.Authenticator
	files         *file.Service
	blobs         realtime.Blobs
	usage         *usage.Writer
	budgets       *budget.Manager
	pictures      realtime.Pictures
	enhancer      realtime.Enhancer
	origins       httpserver.Origins
	engine        engine.LiveEngine
	webrtc        *webrtc.Transport
	logger        *slog.Logger
}

// newSessions makes the session server, which starts serving when Run is called.
func newSessions(parts sessionParts) (*sessions, error) {
	uptime, err := boottime.Open()
	if err != nil {
		return nil, err
	}
	counted := parts.records.Sessions(uptime)
	instance := session.NewInstance(session.Config{Store: counted, Uptime: uptime.Now, NewID: rand.Text,
		Logger: parts.logger})
	server := realtime.New(realtime.Config{
		Catalog: parts.catalog, Authenticator: parts.authenticator, Keys: parts.records.Keys(), Sessions: instance,
		Files: parts.files, Blobs: parts.blobs, Usage: parts.usage, Budgets: parts.budgets, Engine: parts.engine,
		Pictures: parts.pictures, Enhancer: parts.enhancer, Origins: parts.origins, Now: parts.now,
		WebRTC: parts.webrtc.For(), Logger: parts.logger,
	})
	return &sessions{server, instance, counted, parts.webrtc}, nil
}

// beside serves the session paths and passes all other requests to the given handler.
func (s *sessions) beside(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pattern := s.server.Pattern(r.URL.Path)
		if pattern == "" {
			handler.ServeHTTP(w, r)
			return
		}
		r.Pattern = pattern // for the access log
		s.server.ServeHTTP(w, r)
	})
}

// firstLease is how long a starting server waits for its session lease.
const firstLease = 5 * time.Second

// await waits up to firstLease until sessions can be opened or the first lease attempt has failed.
// Without this wait, a client's first readiness check would fail.
func (s *sessions) await(ctx context.Context) {
	select {
	case <-s.instance.Tried():
	case <-time.After(firstLease):
	case <-ctx.Done():
	}
}

// ready returns an error while no sessions can be opened.
func (s *sessions) ready(context.Context) error {
	if !s.instance.Ready() {
		return errors.New("this server has no session lease")
	}
	return nil
}
