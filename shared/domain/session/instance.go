package session

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
)

const (
	storeTime = 5 * time.Second
	// checkEvery is how often an instance checks whether it must end its sessions. It also checks before each frame.
	checkEvery = 500 * time.Millisecond
	retryEvery = time.Second // after a store failure
	// settleTime limits how long an abandoned store call may still take effect.
	settleTime = time.Minute
)

type Config struct {
	Store Store
	// Uptime is a clock that cannot be set, and that keeps running while the process is suspended
	// or the machine sleeps.
	Uptime func() time.Duration
	// NewID returns a unique name for an epoch or a session. It consists of letters and digits and cannot be guessed.
	NewID  func() string
	Logger *slog.Logger
	// Address is the IP address and port at which other instances reach this one, or empty.
	Address string
}

// Instance is one process that serves sessions. Run renews its lease. Sessions can be opened only
// while it has a lease.
type Instance struct {
	config    Config
	tried     chan struct{}
	tellTried func()

	mu    sync.Mutex
	lease *lease // nil without a lease
	// owed lists the slots that the store has yet to free.
	owed    []debt
	counted int
	// queues maps accounts to their clients that wait at this instance.
	queues map[string]*queue
}

type lease struct {
	epoch string
	// renewed is when the last successful renewal started.
	renewed time.Duration
	lost    chan struct{} // closed when the lease is lost
	over    bool
}

// debt is a slot that must be freed, because an abandoned Take may still take effect. It is first freed at the time
// `due`, and then repeatedly until the time `until`.
type debt struct {
	slot       Slot
	due, until time.Duration
}

func NewInstance(c Config) *Instance {
	tried := make(chan struct{})
	return &Instance{
		config: c, queues: map[string]*queue{}, tried: tried, tellTried: sync.OnceFunc(func() { close(tried) }),
	}
}

// Run renews the lease until the context ends, and then ends the lease. If the lease is lost, it starts another lease
// with a new epoch.
func (i *Instance) Run(ctx context.Context) {
	for ctx.Err() == nil {
		l := i.begin(ctx)
		if l == nil {
			return
		}
		i.hold(ctx, l)
		i.lose(l)
		i.call(context.WithoutCancel(ctx), "end a lease", storeTime, func(ctx context.Context) error {
			return i.config.Store.End(ctx, l.epoch)
		})
	}
}

// begin retries until it succeeds. It returns nil if the context ends first.
func (i *Instance) begin(ctx context.Context) *lease {
	epoch := i.config.NewID()
	for {
		began := i.config.Uptime()
		err := i.call(ctx, "begin a lease", storeTime,
			func(ctx context.Context) error { return i.config.Store.Begin(ctx, epoch, i.config.Address) })
		if fault.Is(err, fault.Conflict) {
			epoch = i.config.NewID()
		}
		if err == nil && i.config.Uptime()-began < FenceAfter {
			l := &lease{epoch: epoch, renewed: began, lost: make(chan struct{})}
			i.mu.Lock()
			i.lease = l
			i.mu.Unlock()
			i.tellTried()
			return l
		}
		i.tellTried()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryEvery):
		}
	}
}

func (i *Instance) hold(ctx context.Context, l *lease) {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	next := l.renewed + RenewEvery
	for i.alive(l) {
		now := i.config.Uptime()
		if now >= next {
			err := i.call(ctx, "renew a lease", l.renewed+FenceAfter-now, func(ctx context.Context) error {
				return i.config.Store.Renew(ctx, l.epoch)
			})
			switch {
			case err == nil:
				i.mu.Lock()
				l.renewed = now
				i.mu.Unlock()
				next = now + RenewEvery
			case fault.Is(err, fault.Conflict):
				return
			default:
				next = i.config.Uptime() + retryEvery
			}
		}
		i.settle(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (i *Instance) call(ctx context.Context, what string, within time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, min(within, storeTime))
	defer cancel()
	err := do(ctx)
	if err != nil && ctx.Err() != context.Canceled {
		i.config.Logger.Warn("the session store failed", "call", what, "error", err)
	}
	return err
}

// alive reports whether sessions may be served under the lease. If not, it marks the lease as lost.
func (i *Instance) alive(l *lease) bool {
	now := i.config.Uptime()
	i.mu.Lock()
	defer i.mu.Unlock()
	if !l.over && now-l.renewed < FenceAfter {
		return true
	}
	i.loseLocked(l)
	return false
}

func (i *Instance) held() *lease {
	i.mu.Lock()
	l := i.lease
	i.mu.Unlock()
	if l == nil || !i.alive(l) {
		return nil
	}
	return l
}

func (i *Instance) lose(l *lease) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.loseLocked(l)
}

func (i *Instance) loseLocked(l *lease) {
	if l.over {
		return
	}
	l.over = true
	close(l.lost)
	if i.lease == l {
		i.lease = nil
	}
}

func errNoLease() error {
	err := fault.New(fault.Unavailable, "No session can be opened now. Try again.")
	err.RetryAfter = time.Second
	return err
}

// Open opens a session for the account. The parameter limit is the maximum number of the account's open sessions (0
// means no limit). If the context ends, Open continues for up to storeTime to find out whether a slot was taken.
//
// Errors: fault.Limited if no slot is free, or other clients wait for one (see Wait); fault.Unavailable while the
// instance has no lease.
func (i *Instance) Open(ctx context.Context, account string, limit int) (*Session, error) {
	l := i.held()
	if l == nil {
		return nil, errNoLease()
	}
	return i.take(ctx, l, Slot{ID: i.newSessionID(), Account: account, Epoch: l.epoch}, limit)
}

func (i *Instance) newSessionID() string { return "session_" + i.config.NewID() }

// take opens a session in the slot. If the store fails, take frees the slot immediately, and again later.
//
// Errors: as for Open.
func (i *Instance) take(ctx context.Context, l *lease, slot Slot, limit int) (*Session, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	switch err := i.config.Store.Take(ctx, slot, limit); {
	case fault.Is(err, fault.Limited):
		return nil, err
	case fault.Is(err, fault.Conflict):
		i.lose(l)
		return nil, errNoLease()
	case err != nil:
		i.owe(debt{slot: slot, until: i.config.Uptime() + settleTime})
		return nil, err
	}
	if !i.alive(l) {
		// Run will call End, which frees the slot.
		return nil, errNoLease()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.counted++
	return &Session{instance: i, lease: l, slot: slot}, nil
}

func (i *Instance) HasPeers() bool { return i.config.Address != "" }

// Find returns the address of the instance that has the epoch. own is true if it is this instance.
//
// Errors: fault.Conflict if no instance has the epoch any more.
func (i *Instance) Find(ctx context.Context, epoch string) (address string, own bool, err error) {
	if l := i.held(); l != nil && l.epoch == epoch {
		return i.config.Address, true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	address, err = i.config.Store.Address(ctx, epoch)
	return address, false, err
}

func (i *Instance) Ready() bool { return i.held() != nil }

// Tried returns a channel that is closed after the first attempt to get a lease, whether or not it succeeded.
func (i *Instance) Tried() <-chan struct{} { return i.tried }

func (i *Instance) Count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.counted
}

func (i *Instance) owe(d debt) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.owed = append(i.owed, d)
}

func (i *Instance) settle(ctx context.Context) {
	now := i.config.Uptime()
	i.mu.Lock()
	all := i.owed
	i.owed = nil
	i.mu.Unlock()
	for _, d := range all {
		if d.due <= now {
			err := i.call(ctx, "free a slot", storeTime,
				func(ctx context.Context) error { return i.config.Store.Free(ctx, d.slot) })
			if err == nil && d.until <= now {
				continue
			}
			d.due = now + retryEvery
			if err == nil {
				d.due = d.until
			}
		}
		i.owe(d)
	}
}

type Session struct {
	instance *Instance
	lease    *lease
	slot     Slot
	closing  sync.Once
}

func (s *Session) ID() string { return s.slot.ID }

// Epoch lets other instances find the instance that has the session.
func (s *Session) Epoch() string { return s.slot.Epoch }

// Alive reports whether the session may still be served. Call it before every frame.
func (s *Session) Alive() bool { return s.instance.alive(s.lease) }

// Lost returns a channel that is closed when another session may soon take the slot. The session
// must then be closed immediately.
func (s *Session) Lost() <-chan struct{} { return s.lease.lost }

// Close frees the session's slot, even if the context has ended. If that fails, the instance keeps trying.
func (s *Session) Close(ctx context.Context) {
	s.closing.Do(func() {
		i := s.instance
		err := i.call(context.WithoutCancel(ctx), "free a slot", storeTime, func(ctx context.Context) error {
			return i.config.Store.Free(ctx, s.slot)
		})
		if err != nil {
			i.owe(debt{slot: s.slot})
		}
		i.kick(s.slot.Account)
		i.mu.Lock()
		defer i.mu.Unlock()
		i.counted--
	})
}
