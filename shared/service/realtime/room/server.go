package room

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/realtime/livekit"
)

const Path = "/v1/rooms/"

const tokenTime = 5 * time.Minute

// maxBurst and maxPerSecond limit the bytes that a client sends on its socket. LiveKit's clients send a few kilobytes.
const maxBurst, maxPerSecond = 600_000, 100_000

// maxDescriptions limits the session descriptions that are applied concurrently.
const maxDescriptions = 64

type ServerConfig struct {
	Ports   *Ports
	Secret  []byte
	Now     func() time.Time
	NewID   func() string
	Origins httpserver.Origins
	// Relays serve clients that cannot reach the media ports.
	Relays Relays
	Logger *slog.Logger
}

// Server contains this process's rooms and serves their signaling below Path.
type Server struct {
	config ServerConfig
	tokens *livekit.Tokens
	// descriptions lets each room apply one session description at a time, because a description takes milliseconds.
	descriptions *ratelimit.Turns

	mu    sync.Mutex
	rooms map[string]*Room
}

var _ http.Handler = (*Server)(nil)

var exposed = []string{"X-Request-Id, Allow"}

func NewServer(c ServerConfig) *Server {
	return &Server{
		config: c, tokens: livekit.NewTokens(c.Secret, c.Now), rooms: map[string]*Room{},
		descriptions: ratelimit.NewTurns(maxDescriptions, maxDescriptions-1),
	}
}

// Open opens a room. The caller must close it.
func (s *Server) Open(c Config) (*Room, error) {
	name := prefix + s.config.NewID()
	if c.Owner != "" {
		name = prefix + c.Owner + "_" + s.config.NewID()
	}
	r, err := newRoom(s, name, c)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rooms[r.name] = r
	return r, nil
}

const prefix = "room_"

func OwnerOf(name string) string {
	rest, isRoom := strings.CutPrefix(name, prefix)
	owner, _, owned := strings.Cut(rest, "_")
	if !isRoom || !owned {
		return ""
	}
	return owner
}

func (s *Server) Find(name string) *Room {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rooms[name]
}

func (s *Server) remove(r *Room) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rooms, r.name)
}

// Token returns a token for a room. If publish is set, the token permits publishing in the room, not only watching. All
// such tokens of a room have the same identity, so that a room has one client that publishes.
func (s *Server) Token(r *Room, publish bool) (string, error) {
	identity := r.publisher
	if !publish {
		identity = "viewer-" + s.config.NewID()
	}
	return s.tokens.Make(livekit.Grant{
		Room: r.name, Identity: identity, Publish: publish, Expires: s.config.Now().Add(tokenTime),
	})
}

// ServeHTTP serves the paths below Path. A path consists of the room's name, then rtc (version 0)
// or rtc/v1 (version 1), then optionally validate.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, version, validates, known := readPath(r.URL.Path)
	s.config.Origins.Allow(w.Header(), r, exposed)
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case httpserver.IsPreflight(r):
		httpserver.AnswerPreflight(w, r, http.MethodGet)
		return
	case !known:
		reject(w, http.StatusNotFound, "Not Found")
		return
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		reject(w, http.StatusMethodNotAllowed, "Method Not Allowed")
		return
	}
	grant, expired, err := s.authenticate(r, name)
	if err != nil {
		reject(w, http.StatusUnauthorized, err.Error())
		return
	}
	join, room, most := livekit.Join{}, s.Find(name), livekit.MaxJoin
	if room == nil || expired && grant.Identity != room.publisher {
		most = livekit.MaxResume
	}
	if !validates { // reading can take a millisecond
		if room != nil && !room.mayTry(grant) {
			rejectForNow(w)
			return
		}
		if join, err = livekit.ReadJoin(r, version, most); err != nil {
			reject(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	switch err := s.admit(join, grant, expired, validates); {
	case fault.Is(err, fault.NotFound) && join.Resume != "" && !validates:
		s.sendAway(w, r)
	case fault.Is(err, fault.NotFound):
		reject(w, http.StatusNotFound, err.Error())
	case err != nil:
		reject(w, http.StatusUnauthorized, err.Error())
	case validates:
		_, _ = w.Write([]byte("success"))
	default:
		s.join(w, r, grant, join)
	}
}

// readPath parses a path below Path. validates means that the request only checks a token.
func readPath(path string) (name string, version livekit.Version, validates, known bool) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(path, Path), "/")
	rest, validates = strings.CutSuffix(rest, "/validate")
	version, known = map[string]livekit.Version{"rtc": livekit.Version0, "rtc/v1": livekit.Version1}[rest]
	return name, version, validates, known
}

// Gone serves a GET for a room that no server has anymore. It makes a resuming client join again.
// Because the token is not verified, it reads at most MaxResume bytes of a join request.
func (s *Server) Gone(w http.ResponseWriter, r *http.Request) {
	s.config.Origins.Allow(w.Header(), r, exposed)
	w.Header().Set("Cache-Control", "no-store")
	_, version, validates, known := readPath(r.URL.Path)
	join, err := livekit.ReadJoin(r, version, livekit.MaxResume)
	if known && err == nil && join.Resume != "" && !validates {
		s.sendAway(w, r)
		return
	}
	reject(w, http.StatusNotFound, "The room does not exist.")
}

// authenticate verifies the token in a request for the room.
//
// Errors: fault.Unauthorized.
func (s *Server) authenticate(r *http.Request, name string) (grant livekit.Grant, expired bool, err error) {
	grant, expired, err = s.tokens.Read(livekit.TokenOf(r))
	if err == nil && grant.Room != name {
		err = fault.New(fault.Unauthorized, "The token is for another room.")
	}
	return grant, expired, err
}

// admit checks whether a verified token currently gives access to its room.
//
// Errors: fault.Unauthorized; fault.NotFound if the room no longer exists.
func (s *Server) admit(join livekit.Join, grant livekit.Grant, expired, validates bool) error {
	r := s.Find(grant.Room)
	if r == nil {
		return fault.New(fault.NotFound, "The room does not exist.")
	}
	// A client that is in the room may reconnect with its old token, and the session's own client may join again,
	// because libraries keep the first token.
	if expired && grant.Identity != r.publisher && !(validates && r.has(grant.Identity)) &&
		r.find(grant.Identity, join.Resume) == nil {
		return fault.New(fault.Unauthorized, "The token has expired.")
	}
	return nil
}

// sendAway makes a client join again if it tries to resume in a room that no longer exists.
func (s *Server) sendAway(w http.ResponseWriter, r *http.Request) {
	socket, err := accept(w, r)
	if err != nil {
		return
	}
	defer socket.CloseNow()
	nobody := &participant{room: &Room{server: s}}
	nobody.write(socket, leave(livekit.ReasonRoomDeleted, livekit.ActionDisconnect))
	socket.close(websocket.StatusNormalClosure, "")
}

// accept upgrades a request from any origin, because the token authorizes it. If it fails, the
// library has already responded.
func accept(w http.ResponseWriter, r *http.Request) (*socket, error) {
	httpserver.TrimUpgrade(r.Header)
	upgrade := &httpserver.OverheadWriter{ResponseWriter: w, Burst: maxBurst, PerSecond: maxPerSecond}
	pings := rate.NewLimiter(5, 50)
	mayPing := func(context.Context, []byte) bool {
		allowed := pings.Allow()
		if !allowed {
			upgrade.Conn.Close()
		}
		return allowed
	}
	conn, err := websocket.Accept(upgrade, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled,
		OnPingReceived: mayPing,
	})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(maxSignal)
	return &socket{conn, upgrade.Conn}, nil
}

// socket is a participant's signaling connection.
type socket struct {
	*websocket.Conn
	network *httpserver.OverheadConn
}

// cut closes the network connection after leaveTime.
func (s *socket) cut() *time.Timer { return time.AfterFunc(leaveTime, func() { s.network.Close() }) }

// close closes the connection and waits up to leaveTime for the client's reply. If a client stalls in the middle of a
// message, the library would wait forever, and CloseNow would wait for it.
func (s *socket) close(code websocket.StatusCode, reason string) {
	defer s.cut().Stop()
	_ = s.Close(code, reason) // fails if the client has disconnected
}

func (s *Server) join(w http.ResponseWriter, r *http.Request, grant livekit.Grant, join livekit.Join) {
	room := s.Find(grant.Room)
	if room == nil {
		reject(w, http.StatusNotFound, "The room does not exist.")
		return
	}
	if !room.admits(grant, join) {
		rejectForNow(w)
		return
	}
	httpserver.SetAccount(r.Context(), room.Account())
	socket, err := accept(w, r)
	if err != nil {
		return
	}
	defer socket.CloseNow()
	if join.Resume != "" {
		p := room.find(grant.Identity, join.Resume)
		if p == nil || p.version != join.Version || !p.attach(socket) {
			nobody := &participant{room: room}
			nobody.write(socket, leave(livekit.ReasonStateMismatch, livekit.ActionReconnect))
			socket.close(websocket.StatusNormalClosure, "")
			return
		}
		p.resumed(join.Request)
		s.follow(p, socket)
		return
	}
	p, err := newParticipant(room, grant, join.Version)
	if err != nil {
		s.config.Logger.Error("cannot add a participant", "session", room.config.Session, "error", err)
		socket.close(websocket.StatusInternalError, "Internal error")
		return
	}
	if !p.attach(socket) || !room.enter(p) {
		p.end(livekit.ReasonJoinFailure, livekit.ActionDisconnect)
		return
	}
	p.welcome(join.Request)
	s.follow(p, socket)
}

// follow handles a participant's messages until its socket is closed.
func (s *Server) follow(p *participant, socket *socket) {
	if p.listen(socket) {
		p.end(livekit.ReasonClientInitiated, livekit.ActionDisconnect)
		return
	}
	p.detach(socket)
}

func rejectForNow(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	reject(w, http.StatusTooManyRequests, "The room has too many new participants. Try again later.")
}

// reject responds before signaling starts. Clients display the text.
func reject(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // fails if the client has disconnected
}
