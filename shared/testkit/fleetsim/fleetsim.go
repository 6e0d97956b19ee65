// Package fleetsim simulates model servers that keep what they have read in a
// cache, to compare what chooses among them. Time is simulated and chance is
// seeded, so that a run can be repeated exactly.
package fleetsim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// blockTokens is how many tokens a cache keeps or forgets together.
const blockTokens = 64

const (
	// prefillRate and generationRate are how many tokens a server reads and writes
	// in a second for one call.
	prefillRate, generationRate = 8000, 50
	// apps have a system prompt each; agents are every third.
	apps = 24
)

// Config is a simulation.
type Config struct {
	Servers int
	// CacheTokens is how many tokens each server keeps.
	CacheTokens int
	// Calls are made in all, by Concurrent conversations at a time; when one ends,
	// another begins.
	Calls, Concurrent int
	// Alike is the part of conversations that begin with the same words, besides
	// those of some applications.
	Alike float64
	Seed  uint64
}

// Call is one call of a conversation.
type Call struct {
	Account string
	// Body is the chat, its texts shortened.
	Body []byte
	// prompt names the blocks of the prompt: calls that share a beginning share
	// names. generated are those of the answer.
	prompt, generated []uint64
}

// Router chooses a server for a call; done is called when the call has ended.
type Router interface {
	Route(f *Fleet, call Call) (server int, done func())
}

// Result is what came of a run.
type Result struct {
	// Hits is the part of the prompts' tokens that was cached.
	Hits float64
	// BusiestCalls and BusiestTime are how many times the mean the busiest server
	// had, of calls and of time spent on them.
	BusiestCalls, BusiestTime float64
}

// Fleet is the state of the servers.
type Fleet struct {
	config  Config
	random  *rand.Rand
	servers []*server
	queue   events
	now     time.Duration
	begun   int
}

// server is a model server.
type server struct {
	cache    cache
	inFlight int
	calls    int
	busy     time.Duration
}

// Run runs a simulation.
func Run(c Config, router Router) Result {
	f := &Fleet{config: c, random: rand.New(rand.NewPCG(c.Seed, 1))}
	for range c.Servers {
		f.servers = append(f.servers, &server{cache: newCache(c.CacheTokens / blockTokens)})
	}
	for i := range c.Concurrent {
		talk := f.converse()
		f.at(time.Duration(i)*time.Millisecond*50, func() { f.call(router, talk) })
	}
	var hit, asked int
	f.queue.count = func(blocks, cached int) { asked, hit = asked+blocks, hit+cached }
	for len(f.queue.all) > 0 {
		next := heap.Pop(&f.queue).(event)
		f.now = next.at
		next.run()
	}
	r := Result{Hits: float64(hit) / float64(asked)}
	var calls, mostCalls int
	var busy, mostBusy time.Duration
	for _, s := range f.servers {
		calls, mostCalls = calls+s.calls, max(mostCalls, s.calls)
		busy, mostBusy = busy+s.busy, max(mostBusy, s.busy)
	}
	r.BusiestCalls = float64(mostCalls*c.Servers) / float64(calls)
	r.BusiestTime = mostBusy.Seconds() * float64(c.Servers) / busy.Seconds()
	return r
}

// Now is the simulated time.
func (f *Fleet) Now() time.Duration { return f.now }

// InFlight is how many calls a server has.
func (f *Fleet) InFlight(server int) int { return f.servers[server].inFlight }

// Servers is how many there are.
func (f *Fleet) Servers() int { return len(f.servers) }

// Cached is how many blocks of a call's prompt a server has in its cache.
func (f *Fleet) Cached(server int, call Call) int { return f.servers[server].cache.match(call.prompt) }

// conversation is what one user or agent says to a model.
type conversation struct {
	app, account int
	agent        bool
	id           uint64
	turn, turns  int
	prompt       []uint64
	body         strings.Builder
}

// converse begins a conversation: a system prompt, which others share, and turns.
// Few applications have most of the conversations.
func (f *Fleet) converse() *conversation {
	app := min(int(f.random.ExpFloat64()*apps/5), apps-1)
	if f.config.Alike > 0 && f.random.Float64() < f.config.Alike {
		app = 1
	}
	talk := &conversation{
		app: app, account: app / 2, agent: app%3 == 2, id: f.random.Uint64(), turns: 1 + int(f.random.ExpFloat64()*4),
	}
	system := 300 + 100*app
	if talk.agent {
		talk.turns, system = 1+int(f.random.ExpFloat64()*15), 8000+400*app
	}
	for i := range system / blockTokens {
		talk.prompt = append(talk.prompt, uint64(app)<<32|uint64(i))
	}
	fmt.Fprintf(&talk.body, `{"model":"m","messages":[{"role":"system","content":"Application %d."}`, app)
	return talk
}

// extend adds tokens that nobody else shares.
func (talk *conversation) extend(prompt []uint64, tokens int) []uint64 {
	for range 1 + tokens/blockTokens {
		prompt = append(prompt, talk.id+uint64(len(prompt)))
	}
	return prompt
}

// call makes the next call of a conversation.
func (f *Fleet) call(router Router, talk *conversation) {
	if f.begun++; f.begun > f.config.Calls {
		return
	}
	said, answered, pause := 30+f.random.IntN(400), 100+f.random.IntN(500), f.random.ExpFloat64()*30
	if talk.agent {
		said, answered, pause = 300+f.random.IntN(2000), 50+f.random.IntN(300), f.random.ExpFloat64()*2
	}
	if talk.turn == 0 && talk.app%3 == 1 {
		// These applications begin all conversations with the same words, and are
		// one large key for the choice.
		for i := range 2000 / blockTokens {
			talk.prompt = append(talk.prompt, uint64(talk.app)<<32|1<<31|uint64(i))
		}
		fmt.Fprintf(&talk.body, `,{"role":"user","content":"The rules of application %d."}`, talk.app)
	} else {
		talk.prompt = talk.extend(talk.prompt, said)
		fmt.Fprintf(&talk.body, `,{"role":"user","content":"Turn %d of %d."}`, talk.turn, talk.id)
	}
	whole := talk.extend(talk.prompt, answered)
	call := Call{
		Account: fmt.Sprint("account-", talk.account), Body: []byte(talk.body.String() + "]}"),
		prompt: talk.prompt, generated: whole[len(talk.prompt):],
	}
	at, done := router.Route(f, call)
	s := f.servers[at]
	cached := s.cache.match(call.prompt)
	f.queue.count(len(call.prompt), cached)
	s.cache.add(call.prompt)
	took := time.Duration(float64(time.Second) *
		(float64((len(call.prompt)-cached)*blockTokens)/prefillRate + float64(answered)/generationRate))
	s.inFlight++
	s.calls++
	s.busy += took
	f.at(took, func() {
		s.inFlight--
		done()
		s.cache.add(whole)
		talk.prompt = whole
		talk.body.WriteString(`,{"role":"assistant","content":"An answer."}`)
		if talk.turn++; talk.turn >= talk.turns {
			talk = f.converse()
		}
		f.at(time.Duration(pause*float64(time.Second)), func() { f.call(router, talk) })
	})
}

// at has something happen later.
func (f *Fleet) at(wait time.Duration, run func()) {
	f.queue.order++
	heap.Push(&f.queue, event{f.now + wait, f.queue.order, run})
}

// event happens at a time; of two at the same time the one that was planned first
// comes first.
type event struct {
	at    time.Duration
	order int
	run   func()
}

// events are those to come.
type events struct {
	all   []event
	order int
	count func(blocks, cached int)
}

func (e *events) Len() int { return len(e.all) }
func (e *events) Less(i, j int) bool {
	a, b := e.all[i], e.all[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}
func (e *events) Swap(i, j int) { e.all[i], e.all[j] = e.all[j], e.all[i] }
func (e *events) Push(x any)    { e.all = append(e.all, x.(event)) }
func (e *events) Pop() any {
	last := e.all[len(e.all)-1]
	e.all = e.all[:len(e.all)-1]
	return last
}
