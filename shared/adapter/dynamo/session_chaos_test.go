package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/session"
	"cutroom/shared/testkit/fakeaws"
)

// sessionChaos runs instances whose clients open sessions of one account, wait, leave and close.
// The network delays requests, loses requests or responses, and delivers requests twice or late.
type sessionChaos struct {
	*testing.T
	cloud  *fakeaws.Cloud
	limit  int
	ids    atomic.Int64
	faults atomic.Bool

	mu        sync.Mutex
	random    *rand.Rand
	broken    bool
	counts    map[string]int
	serving   map[*session.Session]bool
	instances []*chaosInstance
}

const longestChaosQueue = 6

func (*sessionChaos) Now() time.Time              { return time.Now() }
func (*sessionChaos) Turn() int64                 { return 0 }
func (*sessionChaos) After(time.Duration, func()) {}

type chaosInstance struct {
	*session.Instance
	courier courier
	cut     atomic.Bool
}

func (c *sessionChaos) delivers(i *chaosInstance, end <-chan struct{}) {
	for {
		select {
		case <-end:
			return
		case <-time.After(c.delay(10 * time.Millisecond)):
		}
		n := i.courier.pending()
		if n == 0 {
			continue
		}
		at, becomes := int(c.delay(time.Duration(n))), arrives
		switch {
		case i.courier.isLate(at) && !c.odds(500):
			continue
		case i.cut.Load():
			becomes = isLost
		case c.faults.Load() && c.odds(15):
			becomes = []fate{isLost, losesAnswer, arrivesTwice, arrivesLate, conflicts}[c.delay(5)]
		}
		i.courier.deliver(at, becomes)
	}
}

// around performs a request and checks its changes.
func (c *sessionChaos) around(_ context.Context, request func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.read()
	request()
	c.check(before, c.read())
}

func (c *sessionChaos) delay(most time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.random.Int64N(int64(most)))
}

func (c *sessionChaos) odds(of int) bool { return c.delay(time.Duration(of)) == 0 }

type chaosItem struct {
	open int64
	// taken counts the slots with a live lease. undead counts the slots whose lease is not marked as dead.
	taken, undead int
	slots         []string
	queue         []session.Ticket
}

func (c *sessionChaos) read() (a chaosItem) {
	own := c.cloud.DynamoDB.Item("sessions", "account/acme", "")
	a.open = num(own, "open_slots")
	for name := range own {
		id, ok := strings.CutPrefix(name, "slot/")
		if !ok {
			continue
		}
		a.slots = append(a.slots, id)
		lease := c.cloud.DynamoDB.Item("sessions", "lease/"+textIn(own, name), "")
		if lease["dead"] == nil {
			a.undead++
			if time.Duration(time.Now().Unix()-num(lease, "renewed_at"))*time.Second < session.TakeAfter {
				a.taken++
			}
		}
	}
	queue, err := session.ParseQueue(textIn(own, "queue"))
	if err != nil {
		c.fail("the queue: %v", err)
	}
	a.queue = queue.Tickets(time.Duration(time.Now().Unix()) * time.Second)
	return a
}

func (c *sessionChaos) check(before, after chaosItem) {
	if after.open != int64(len(after.slots)) {
		c.fail("the account's number of open slots is %d, but it has %d slots", after.open, len(after.slots))
	}
	if after.undead > c.limit {
		c.fail("%d sessions are open, but the limit is %d", after.undead, c.limit)
	}
	if len(after.queue) > longestChaosQueue {
		c.fail("%d clients wait, but the limit is %d", len(after.queue), longestChaosQueue)
	}
	for _, id := range after.slots {
		if slices.Contains(before.slots, id) {
			continue
		}
		at := slices.IndexFunc(before.queue, func(t session.Ticket) bool { return t.ID == id })
		if at < 0 && len(before.queue) > 0 || at >= c.limit-before.taken {
			c.fail("%s overtook others in %v with %d slots taken", id, before.queue, before.taken)
		}
	}
}

// fail reports the first mistake and the latest requests.
func (c *sessionChaos) fail(format string, args ...any) {
	if c.broken {
		return
	}
	c.broken = true
	c.Errorf(format, args...)
	for _, i := range c.instances {
		i.courier.mu.Lock()
		c.Log(i.courier.recent())
		i.courier.mu.Unlock()
	}
}

func (c *sessionChaos) start(ctx context.Context, running *sync.WaitGroup, end <-chan struct{}) *chaosInstance {
	i := &chaosInstance{courier: courier{random: rand.New(rand.NewPCG(c.random.Uint64(), 7)), around: c.around}}
	begun := time.Now()
	i.Instance = session.NewInstance(session.Config{
		Store: dynamo.NewSessions(i.courier.open(c.cloud), "sessions"), Logger: slog.New(slog.DiscardHandler),
		Uptime: func() time.Duration { return time.Since(begun) },
		NewID:  func() string { return fmt.Sprint(c.ids.Add(1)) },
	})
	go c.delivers(i, end)
	running.Go(func() { i.Run(ctx) })
	<-i.Tried()
	return i
}

func (c *sessionChaos) connects(ctx context.Context, i *chaosInstance) {
	for ctx.Err() == nil {
		time.Sleep(c.delay(3 * time.Second))
		patience, cancel := context.WithTimeout(ctx, c.delay(30*time.Second))
		s, err := (*session.Session)(nil), error(nil)
		if c.odds(3) {
			s, err = i.Open(patience, "acme", c.limit)
			c.note("open", err)
		} else {
			s, err = i.Wait(patience, "acme", session.Limits{Sessions: c.limit, Queue: longestChaosQueue}, func(session.Place) {})
			c.note("wait", err)
		}
		cancel()
		if err == nil {
			c.serve(s)
		}
	}
}

func (c *sessionChaos) note(what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[fmt.Sprint(what, ": ", err)]++
}

func (c *sessionChaos) serve(s *session.Session) {
	c.mu.Lock()
	c.serving[s] = true
	alive := 0
	for other := range c.serving {
		if other.Alive() {
			alive++
		}
	}
	if alive > c.limit {
		c.fail("%d sessions are served concurrently, but the limit is %d", alive, c.limit)
	}
	c.mu.Unlock()
	select {
	case <-s.Lost():
	case <-time.After(c.delay(4 * time.Second)):
	}
	c.mu.Lock()
	delete(c.serving, s)
	c.mu.Unlock()
	s.Close(c.Context())
}

// run lets clients connect for a few minutes while requests fail. Afterwards no record may remain,
// and a freed slot must go to the first waiting client within a second.
func (c *sessionChaos) run() {
	ctx, stop := context.WithCancel(c.Context())
	var running, clients sync.WaitGroup
	end := make(chan struct{})
	defer close(end)
	defer running.Wait()
	defer stop()
	for range 3 {
		c.instances = append(c.instances, c.start(ctx, &running, end))
	}
	c.faults.Store(true)
	busy, done := context.WithTimeout(ctx, 4*time.Minute)
	defer done()
	for n := range 9 {
		clients.Go(func() { c.connects(busy, c.instances[n%3]) })
	}
	for busy.Err() == nil {
		time.Sleep(c.delay(40 * time.Second))
		cut := &c.instances[c.delay(3)].cut
		cut.Store(true)
		time.Sleep(c.delay(time.Minute))
		cut.Store(false)
	}
	clients.Wait()
	c.faults.Store(false)
	time.Sleep(3 * time.Minute)
	left, err := c.read(), c.serveInOrder(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(left.queue) > 0 || left.taken > 0 || err != nil {
		c.fail("remaining: %+v; %v", left, err)
	}
}

func (c *sessionChaos) serveInOrder(ctx context.Context) error {
	var open []*session.Session
	for n := range c.limit {
		s, err := c.instances[n%3].Open(ctx, "acme", c.limit)
		if err != nil {
			return err
		}
		open = append(open, s)
	}
	served := make(chan *session.Session, longestChaosQueue)
	for n := range longestChaosQueue {
		placed := make(chan struct{})
		once := sync.OnceFunc(func() { close(placed) })
		go func() {
			defer once()
			s, _ := c.instances[n%3].Wait(ctx, "acme", session.Limits{Sessions: c.limit, Queue: longestChaosQueue},
				func(session.Place) { once() })
			served <- s
		}()
		<-placed
	}
	for range longestChaosQueue {
		open[0].Close(ctx)
		select {
		case s := <-served:
			if open = append(open[1:], s); s == nil {
				return errors.New("a wait ended")
			}
		case <-time.After(time.Second):
			return errors.New("a free slot was not taken within a second")
		}
	}
	for _, s := range open {
		s.Close(ctx)
	}
	return nil
}

// Clients are served in order, and every freed slot becomes available again.
func TestSessionLimitsHoldInChaos(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			c := &sessionChaos{T: t, limit: 1 + int(seed%3), random: rand.New(rand.NewPCG(seed, 7)), counts: counts,
				serving: map[*session.Session]bool{}}
			c.cloud = fakeaws.New(c, c.random, dynamo.Tables())
			c.run()
		})
		if t.Failed() {
			t.Fatalf("with the seed %d", seed)
		}
	}
	for what, n := range counts {
		t.Logf("%7d %s", n, what)
	}
}
