package dynamo_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
	"cutroom/shared/testkit/conformance"
	"cutroom/shared/testkit/fakeaws"
)

// chaos runs calls of many processes on an account's sessions at once. Each request waits until it is drawn.
// Then it arrives, is lost, loses its answer, arrives twice, or arrives late. After each request, the items are
// compared with the promises.
type chaos struct {
	*testing.T
	courier
	plan   chaosPlan
	cloud  *fakeaws.Cloud
	now    time.Time
	client *dynamodb.Client
	table  string

	processes []*chaosProcess
	slots     map[string]*chaosSlot
	active    int
	number    int
	seen      map[string]bool
	// strange is the first refusal without a reason.
	strange string
}

// chaosPlan describes a run.
type chaosPlan struct {
	limits []int
	// dead says that leases die.
	dead, line, faults bool
	tasks              int
}

type chaosProcess struct {
	*dynamo.Sessions
	epoch string
	// silent processes renew no more.
	silent bool
}

// chaosSlot is what the callers know of a slot.
type chaosSlot struct {
	session.Slot
	limit   int
	by      string
	process *chaosProcess
	// state is taking, open, freeing, waiting, redeeming, gone, unsure.
	state  string
	number int64
	// may says that a refusal is right, because of a state during the call.
	may bool
	// during are the slots that counted at some time of the call.
	during map[string]bool
	busy   bool
	joined bool
}

// Now, Turn and After make it a clock.
func (c *chaos) Now() time.Time            { return c.now }
func (c *chaos) Turn() int64               { return 0 }
func (*chaos) After(time.Duration, func()) {}

func newChaos(t *testing.T, seed uint64, plan chaosPlan) *chaos {
	c := &chaos{
		T: t, plan: plan, now: time.Unix(1_800_000_000, 0), table: "sessions", slots: map[string]*chaosSlot{},
		seen: map[string]bool{},
	}
	c.random = rand.New(rand.NewPCG(seed, 7))
	c.cloud = fakeaws.New(c, c.random, dynamo.Tables())
	c.client = c.open(c.cloud)
	c.quiet = true
	for range 3 {
		c.begin()
	}
	return c
}

func (c *chaos) begin() *chaosProcess {
	c.number++
	p := &chaosProcess{Sessions: dynamo.NewSessions(c.client, c.table),
		epoch: fmt.Sprint("e", c.number)}
	if err := p.Begin(c.Context(), p.epoch, ""); err != nil {
		c.Fatal(err)
	}
	c.processes = append(c.processes, p)
	return p
}

// world is the account's item, with the epochs of its slots by id.
type world struct {
	own    map[string]types.AttributeValue
	epochs map[string]string
}

func (c *chaos) item(id string) map[string]types.AttributeValue {
	return c.cloud.DynamoDB.Item(c.table, id, "")
}

func (c *chaos) world() *world {
	w := &world{own: c.item("account/acme"), epochs: map[string]string{}}
	for name, value := range w.own {
		if id, ok := strings.CutPrefix(name, "slot/"); ok {
			w.epochs[id] = value.(*types.AttributeValueMemberS).Value
		}
	}
	return w
}

// alive reports whether an epoch counts; dead whether it is marked.
func (c *chaos) alive(epoch string) bool {
	i := c.item("lease/" + epoch)
	return i != nil && i["dead"] == nil && time.Duration(c.now.Unix()-num(i, "renewed_at"))*time.Second < session.TakeAfter
}

func (c *chaos) dead(epoch string) bool { return c.item("lease/" + epoch)["dead"] != nil }

func (c *chaos) live(w *world) (alive, undead int) {
	for id := range w.epochs {
		if c.alive(w.epochs[id]) {
			alive++
		}
		if !c.dead(w.epochs[id]) {
			undead++
		}
	}
	return alive, undead
}

type lineTicket struct {
	id, epoch string
	number    int64
}

// line returns the tickets that count.
func (c *chaos) line(w *world) (counting []lineTicket, all int) {
	for name, value := range w.own {
		rest, ok := strings.CutPrefix(name, "ticket/")
		if !ok {
			continue
		}
		all++
		epoch, id, _ := strings.Cut(rest, "/")
		if c.alive(epoch) && time.Duration(c.now.Unix()-num(w.own, "here/"+epoch))*time.Second < session.GoneAfter {
			n, _ := strconv.ParseInt(value.(*types.AttributeValueMemberN).Value, 10, 64)
			counting = append(counting, lineTicket{id, epoch, n})
		}
	}
	slices.SortFunc(counting, func(a, b lineTicket) int { return int(a.number - b.number) })
	return counting, all
}

func (c *chaos) fail(format string, args ...any) {
	c.Helper()
	w := c.world()
	history := c.recent()
	c.end()
	c.Fatalf("%s\n%s\n  %s", fmt.Sprintf(format, args...), history, show(w.own))
}

// end ends all calls.
func (c *chaos) end() {
	c.quiet = true
	for {
		synctest.Wait()
		c.mu.Lock()
		paused, active := c.paused, c.active
		c.paused = nil
		c.mu.Unlock()
		for _, call := range paused {
			call.fate <- isLost
		}
		if active == 0 && len(paused) == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (c *chaos) log(format string, args ...any) {
	c.history = append(c.history, fmt.Sprintf(format, args...))
}

// check compares the items with what must always be so, and notes what justifies refusals.
func (c *chaos) check() {
	c.Helper()
	w := c.world()
	alive, undead := c.live(w)
	tickets, all := c.line(w)
	if open := num(w.own, "open_slots"); open != int64(len(w.epochs)) {
		c.fail("the account says %d open, and has %d", open, len(w.epochs))
	}
	if num(w.own, "waiting") != int64(all) {
		c.fail("the account says %d wait, has %d", num(w.own, "waiting"), all)
	}
	for id := range w.epochs {
		if c.seen[id] {
			continue
		}
		c.seen[id] = true
		s := c.slots[id]
		if s == nil {
			c.fail("slot %s is nobody's", id)
		}
		if s.limit > 0 && undead > s.limit {
			c.fail("%s of %s under limit %d: %d are open", s.by, id, s.limit, undead)
		}
		if s.by == "take" && s.limit > 0 {
			for _, t := range tickets {
				if c.slots[t.id].joined {
					c.fail("take of %s passed %s, which waits", id, t.id)
				}
			}
		}
	}
	for _, s := range c.slots {
		if s.busy && !s.may && s.limit > 0 {
			switch s.by {
			case "take":
				s.may = alive >= s.limit || len(tickets) > 0
				c.during(s, w)
			case "redeem":
				before := slices.IndexFunc(tickets, func(t lineTicket) bool { return t.id == s.ID })
				s.may = before < 0 || before >= s.limit-alive
				c.during(s, w)
			}
		}
		if _, there := w.epochs[s.ID]; s.state == "open" && !c.dead(s.Epoch) && !there {
			c.fail("slot %s is open, and the item does not have it", s.ID)
		}
	}
}

func (c *chaos) during(s *chaosSlot, w *world) {
	for id := range w.epochs {
		if c.alive(w.epochs[id]) {
			s.during[id] = true
		}
	}
	for name := range w.own {
		if strings.HasPrefix(name, "ticket/") {
			s.during[name] = true
		}
	}
}

// pick draws a slot in a state.
func (c *chaos) pick(state string) *chaosSlot {
	var found []*chaosSlot
	for _, s := range c.slots {
		if s.state == state && !s.busy {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b *chaosSlot) int { return strings.Compare(a.ID, b.ID) })
	return found[c.random.IntN(len(found))]
}

// start begins a call, which done ends.
func (c *chaos) start(what string, s *chaosSlot, call func() error, done func(error)) {
	c.active++
	if s != nil {
		s.busy, s.may, s.during = true, false, map[string]bool{}
		c.log("%s %s limit %d epoch %s", what, s.ID, s.limit, s.Epoch)
	} else {
		c.log("%s", what)
	}
	c.check()
	go func() {
		err := call()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.active--
		if s != nil {
			s.busy = false
			c.log("-> %s %s: %v", what, s.ID, err)
		}
		done(err)
	}()
}

func (c *chaos) choose() {
	p := c.processes[c.random.IntN(len(c.processes))]
	switch draw := c.random.IntN(100); {
	case draw < 35:
		c.take(p)
	case draw < 60:
		if s := c.pick("open"); s != nil {
			c.free(s)
		} else if s := c.pick("unsure"); s != nil {
			c.free(s)
		}
	case draw < 64:
		if s := c.pick("unsure"); s != nil {
			c.free(s)
		}
	case draw < 72 && c.plan.line:
		c.join(p)
	case draw < 86 && c.plan.line:
		if s := c.pick("waiting"); s != nil {
			c.redeem(s)
		}
	case draw < 92 && c.plan.line:
		if !p.silent {
			c.start("look", nil, func() error { _, err := p.Look(c.Context(), "acme", p.epoch); return err }, func(error) {})
		}
	case draw < 93 && c.plan.line:
		if s := c.pick("waiting"); s != nil {
			s.by, s.state = "leave", "leaving"
			c.start("leave", s, func() error { return s.process.Leave(c.Context(), s.Slot) }, func(err error) {
				s.state = "unsure"
				s.joined = false
			})
		}
	case draw < 98:
		if !p.silent {
			c.start("renew", nil, func() error { return p.Renew(c.Context(), p.epoch) }, func(error) {})
		}
	case c.plan.dead:
		switch c.random.IntN(3) {
		case 0:
			p.silent = true
			c.begins()
		case 1:
			c.now = c.now.Add(time.Duration(c.random.IntN(12)) * time.Second)
		case 2:
			p.silent = true
			c.begins()
			c.start("end", nil, func() error { return p.End(c.Context(), p.epoch) }, func(error) {})
		}
	}
}

func (c *chaos) begins() {
	c.quiet = true
	c.begin()
	c.quiet = false
	live := c.processes[:0]
	for _, p := range c.processes {
		if !p.silent {
			live = append(live, p)
		}
	}
	c.processes = live
}

func (c *chaos) newSlot(p *chaosProcess, by, state string) *chaosSlot {
	c.number++
	s := &chaosSlot{Slot: session.Slot{ID: fmt.Sprint("s", c.number), Account: "acme", Epoch: p.epoch}, process: p,
		limit: c.plan.limits[c.random.IntN(len(c.plan.limits))], by: by, state: state}
	c.slots[s.ID] = s
	return s
}

func (c *chaos) take(p *chaosProcess) {
	s := c.newSlot(p, "take", "taking")
	var again func(error)
	call := func() error { return p.Take(c.Context(), s.Slot, s.limit) }
	again = func(err error) {
		switch {
		case err == nil:
			s.state = "open"
		case fault.Is(err, fault.Limited):
			s.state = "gone"
			if !s.may {
				if len(s.during) >= s.limit {
					return // the slots were never open together
				}
				c.wonder("take of %s limit %d was refused without a reason", s.ID, s.limit)
			}
		case fault.Is(err, fault.Conflict):
			s.state = "gone"
			if c.alive(s.Epoch) {
				c.wonder("take of %s: the lease is alive", s.ID)
			}
		case c.random.IntN(3) == 0:
			// The caller repeats it.
			c.start("take again", s, call, again)
		default:
			s.state = "unsure"
		}
	}
	c.start("take", s, call, again)
}

// wonder fails the test once the goroutine of the scheduler runs.
func (c *chaos) wonder(format string, args ...any) {
	c.log(format, args...)
	c.strange = fmt.Sprintf(format, args...)
}

func (c *chaos) free(s *chaosSlot) {
	wasOpen := s.state == "open"
	s.state = "freeing"
	p := s.process
	if c.random.IntN(4) == 0 {
		p = c.processes[c.random.IntN(len(c.processes))]
	}
	call := func() error { return p.Free(c.Context(), s.Slot) }
	c.start("free", s, call, func(err error) {
		s.state = "unsure"
		if err == nil && wasOpen {
			s.state = "freed"
		}
	})
}

func (c *chaos) join(p *chaosProcess) {
	if p.silent {
		return
	}
	s := c.newSlot(p, "redeem", "joining")
	c.joins(s)
}

func (c *chaos) joins(s *chaosSlot) {
	s.state = "joining"
	var number int64
	c.start("join", s, func() (err error) { number, err = s.process.Join(c.Context(), s.Slot, s.number, 20); return err },
		func(err error) {
			switch {
			case err == nil:
				s.state, s.number, s.joined = "waiting", number, true
			case fault.Is(err, fault.Limited), fault.Is(err, fault.Conflict):
				s.state = "gone"
			default:
				s.state = "waiting"
			}
		})
}

func (c *chaos) redeem(s *chaosSlot) {
	s.state, s.by = "redeeming", "redeem"
	c.start("redeem", s, func() error { return s.process.Redeem(c.Context(), s.Slot, s.limit) }, func(err error) {
		switch {
		case err == nil:
			s.state, s.joined = "open", false
		case fault.Is(err, fault.Limited):
			s.state = "waiting"
			if !s.may && s.limit > 0 {
				if len(s.during) >= s.limit {
					return // the slots were never open together
				}
				c.wonder("redeem of %s limit %d was refused without a reason", s.ID, s.limit)
			}
		case fault.Is(err, fault.NotFound):
			s.joined = false
			c.joins(s)
		case fault.Is(err, fault.Conflict):
			s.state, s.joined = "gone", false
		default:
			s.state = "waiting"
		}
	})
}

// step lets one request arrive.
func (c *chaos) step(faults bool) {
	synctest.Wait()
	if n := c.pending(); n == 0 {
		time.Sleep(time.Millisecond)
	} else {
		at, end := c.random.IntN(n), arrives
		if faults && c.random.IntN(12) == 0 {
			end = fate(c.random.IntN(int(arrivesLate) + 1))
		}
		c.now = c.now.Add(time.Duration(c.random.IntN(20)) * time.Millisecond)
		c.deliver(at, end)
	}
	synctest.Wait()
	c.check()
}

func (c *chaos) settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.active == 0 && len(c.paused) == 0
}

func (c *chaos) run(steps int) {
	c.quiet = false
	for range steps {
		if c.active < c.plan.tasks && c.random.IntN(3) == 0 {
			c.choose()
		}
		c.step(c.plan.faults)
		if c.strange != "" {
			c.fail("%s", c.strange)
		}
	}
	for !c.settled() {
		c.step(false)
	}
	c.quiet = true
	c.after()
}

// after looks whether what is left can all be used.
func (c *chaos) after() {
	ctx := c.Context()
	c.log("AFTER")
	p := c.begin()
	for _, id := range slices.Sorted(maps.Keys(c.slots)) {
		if s := c.slots[id]; s.state != "open" && s.state != "waiting" {
			if err := s.process.Free(ctx, s.Slot); err != nil {
				c.fail("free: %v", err)
			}
			if err := p.Leave(ctx, s.Slot); err != nil {
				c.fail("leave: %v", err)
			}
		}
	}
	c.check()
	active := func() int {
		alive, _ := c.live(c.world())
		n, err := p.Active(ctx, "acme")
		if err != nil || n != alive {
			c.fail("active is %d, want %d: %v", n, alive, err)
		}
		return n
	}
	active()
	// Who waits is served in order, if there is a slot.
	for {
		w := c.world()
		alive, _ := c.live(w)
		tickets, _ := c.line(w)
		if len(tickets) == 0 {
			break
		}
		s := c.slots[tickets[0].id]
		s.by = "redeem"
		err := p.Redeem(ctx, s.Slot, s.limit)
		free := s.limit <= 0 || alive < s.limit
		if (err == nil) != free || err != nil && !fault.Is(err, fault.Limited) {
			c.fail("redeem of %s limit %d with %d open: %v", s.ID, s.limit, alive, err)
		}
		if err != nil {
			if err := p.Leave(ctx, s.Slot); err != nil {
				c.fail("leave: %v", err)
			}
		} else {
			s.state = "open"
		}
		c.check()
	}
	for _, limit := range c.plan.limits {
		if limit <= 0 {
			continue
		}
		before := active()
		var mine []session.Slot
		for {
			c.number++
			s := &chaosSlot{Slot: session.Slot{ID: fmt.Sprint("s", c.number), Account: "acme", Epoch: p.epoch}, by: "take",
				limit: limit, process: p, state: "gone"}
			c.slots[s.ID] = s
			err := p.Take(ctx, s.Slot, limit)
			if fault.Is(err, fault.Limited) {
				break
			}
			if err != nil {
				c.fail("take: %v", err)
			}
			mine = append(mine, s.Slot)
			c.check()
		}
		if len(mine) != max(0, limit-before) {
			c.fail("%d were taken beside %d, limit %d", len(mine), before, limit)
		}
		q := p
		for _, slot := range mine {
			if c.random.IntN(2) == 0 {
				q = c.processes[c.random.IntN(len(c.processes))]
			}
			if err := q.Free(ctx, slot); err != nil {
				c.fail("free: %v", err)
			}
		}
		if now := active(); now != before {
			c.fail("%d are left, want %d", now, before)
		}
		c.check()
	}
	for _, id := range slices.Sorted(maps.Keys(c.slots)) {
		c.slots[id].state = "gone"
		if err := p.Free(ctx, c.slots[id].Slot); err != nil {
			c.fail("free: %v", err)
		}
	}
	if n := len(c.world().epochs); n != 0 {
		c.fail("%d slots are left", n)
	}
	c.check()
}

// Under any order of requests and any loss, limits are exact, the items' counts are right, no session passes a
// waiting client, open sessions stay open, and freed slots can all be taken.
func TestSessionChaos(t *testing.T) {
	const steps = 500
	for name, plan := range map[string]chaosPlan{
		"limits":      {limits: []int{4, 7, 9, 0}, tasks: 6},
		"dead":        {limits: []int{5, 8}, tasks: 6, faults: true, dead: true},
		"line":        {limits: []int{5}, tasks: 6, line: true},
		"line limits": {limits: []int{3, 5, 7, 0}, tasks: 6, line: true},
		"all":         {limits: []int{3, 5, 7, 9, 0}, tasks: 8, line: true, faults: true, dead: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newChaos(t, 0, plan).run(steps) })
		})
	}
}

// let lets a request arrive whose description has the text.
func (c *chaos) let(text string) {
	c.Helper()
	synctest.Wait()
	at := slices.IndexFunc(c.paused, func(p *pausedCall) bool { return strings.Contains(p.what, text) })
	if at < 0 {
		c.fail("no call %q is there", text)
	}
	c.deliver(at, arrives)
	synctest.Wait()
}

// A ticket that comes in the moment in which the line is cleared of its instance, which has
// ended, holds up nobody: neither who comes nor who waits.
func TestTicketOfAnInstanceThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChaos(t, 1, chaosPlan{})
		ctx := t.Context()
		p, q := c.processes[0], c.processes[1]
		slot := func(id string, of *chaosProcess) session.Slot {
			return session.Slot{ID: id, Account: "acme", Epoch: of.epoch}
		}
		join := func(of *chaosProcess, id string) {
			if _, err := of.Join(ctx, slot(id, of), 0, 10); err != nil {
				t.Error(err)
			}
		}
		join(p, "first")
		c.quiet = false
		go join(p, "second")
		c.let("read lease/")
		c.quiet = true
		conformance.OK(t, p.End(ctx, p.epoch))
		c.quiet = false
		go func() {
			if _, err := q.Look(ctx, "acme", q.epoch); err != nil {
				t.Error(err)
			}
		}()
		c.let("read account/acme")
		c.let("read lease/")
		c.let("read lease/")
		c.let("SET #ticket") // the second's
		c.let("REMOVE")      // what the look has seen, the first's
		c.end()
		join(q, "third")
		conformance.OK(t, q.Redeem(ctx, slot("third", q), 1))
		conformance.OK(t, q.Take(ctx, slot("fourth", q), 2))
	})
}
