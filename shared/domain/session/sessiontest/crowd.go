package sessiontest

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"cutroom/shared/domain/session"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/testkit/patience"
)

// clients is how many clients a crowd has before another instance starts.
const clients = 24

// RunCrowd lets a crowd wait at three instances for one slot, kills two of them one
// after the other while their clients wait, and starts another in their place. The
// clients that are left are served one at a time, in the order in which they came.
// The store's time must pass.
func RunCrowd(t *testing.T, store session.Store) {
	w := &crowd{T: t, store: store}
	instances := []*member{w.start(), w.start(), w.start()}
	held := w.hold(instances[0])
	for n := range clients {
		w.join(n, instances[n%len(instances)])
	}
	instances[1].kill()
	late := w.start()
	instances = append(instances, late)
	for n := clients; n < clients+clients/4; n++ {
		w.join(n, late)
	}
	// The second is killed while a client of the first is served, so that it has no
	// session, which would be counted until its lease is over.
	w.at.Store(clients / 2 / 3 * 3)
	w.then = instances[2].kill
	held.Close(t.Context())
	w.clients.Wait()
	for _, i := range instances {
		i.kill()
	}

	var want []int
	for n := range clients + clients/4 {
		if n >= clients || n%3 == 0 || n%3 == 2 && n < int(w.at.Load()) {
			want = append(want, n)
		}
	}
	if !slices.Equal(w.served, want) {
		t.Errorf("clients were served in the order\n%d, want\n%d", w.served, want)
	}
}

// crowd is the world of RunCrowd.
type crowd struct {
	*testing.T
	store   session.Store
	clients sync.WaitGroup
	// then is called while the client of the number at is served.
	at   atomic.Int64
	then func()
	// inside counts those who are served at this moment.
	inside atomic.Int64

	mu     sync.Mutex
	served []int
}

// member is an instance that can be killed: none of its calls arrives any more.
type member struct {
	*session.Instance
	session.Store
	dead    atomic.Bool
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

var errKilled = errors.New("the process was killed")

func (m *member) call(do func() error) error {
	if m.dead.Load() {
		return errKilled
	}
	return do()
}

func (m *member) Begin(ctx context.Context, epoch, address string) error {
	return m.call(func() error { return m.Store.Begin(ctx, epoch, address) })
}

func (m *member) Renew(ctx context.Context, epoch string) error {
	return m.call(func() error { return m.Store.Renew(ctx, epoch) })
}

func (m *member) End(ctx context.Context, epoch string) error {
	return m.call(func() error { return m.Store.End(ctx, epoch) })
}

func (m *member) Take(ctx context.Context, slot session.Slot, limit int) error {
	return m.call(func() error { return m.Store.Take(ctx, slot, limit) })
}

func (m *member) Free(ctx context.Context, slot session.Slot) error {
	return m.call(func() error { return m.Store.Free(ctx, slot) })
}

func (m *member) RenewTickets(
	ctx context.Context, account, holder string, own []session.Ticket,
) (tickets []session.Ticket, taken int, err error) {
	err = m.call(func() (err error) {
		tickets, taken, err = m.Store.RenewTickets(ctx, account, holder, own)
		return err
	})
	return tickets, taken, err
}

// kill ends the instance without a word to the store.
func (m *member) kill() {
	m.dead.Store(true)
	m.cancel()
	m.running.Wait()
}

// start starts an instance that has a lease.
func (w *crowd) start() *member {
	w.Helper()
	clock, err := boottime.Open()
	if err != nil {
		w.Fatal(err)
	}
	m := &member{Store: w.store}
	m.Instance = session.NewInstance(session.Config{
		Store: m, Uptime: clock.Now, NewID: rand.Text, Logger: slog.New(slog.DiscardHandler),
	})
	m.ctx, m.cancel = context.WithCancel(w.Context())
	m.running.Go(func() { m.Run(m.ctx) })
	patience.Until(w, "the instance has a lease", m.Ready)
	return m
}

// hold opens the account's only session.
func (w *crowd) hold(m *member) *session.Session {
	w.Helper()
	held, err := m.Open(w.Context(), account, 1)
	if err != nil {
		w.Fatal(err)
	}
	return held
}

// join lets a client wait, and returns once it has a place.
func (w *crowd) join(number int, m *member) {
	w.Helper()
	placed := make(chan struct{})
	once := sync.OnceFunc(func() { close(placed) })
	w.clients.Go(func() {
		s, err := m.Wait(m.ctx, account, session.Limits{Sessions: 1, Queue: 2 * clients},
			func(session.Place) { once() })
		if err != nil {
			if m.ctx.Err() == nil {
				w.Errorf("client %d: %v", number, err)
			}
			once()
			return
		}
		w.serve(number, s)
	})
	<-placed
}

// serve is the session of a client.
func (w *crowd) serve(number int, s *session.Session) {
	if w.inside.Add(1) > 1 {
		w.Errorf("client %d is served beside another", number)
	}
	w.mu.Lock()
	w.served = append(w.served, number)
	w.mu.Unlock()
	if number == int(w.at.Load()) {
		w.then()
	}
	w.inside.Add(-1)
	s.Close(w.Context())
}
