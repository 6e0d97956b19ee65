package fleetsim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/request"
	"cutroom/shared/service/gateway/upstream"
)

// Ideal sees every cache: it chooses the server that has most of the prompt, of
// those that have no more than Bound times the mean of calls.
type Ideal struct{ Bound float64 }

// Route chooses a server.
func (r Ideal) Route(f *Fleet, call Call) (server int, done func()) {
	calls := 1
	for i := range f.Servers() {
		calls += f.InFlight(i)
	}
	best := -1
	for i := range f.Servers() {
		if float64(f.InFlight(i)) >= r.Bound*float64(calls)/float64(f.Servers()) {
			continue
		}
		if best < 0 {
			best = i
			continue
		}
		here, there := f.Cached(i, call), f.Cached(best, call)
		if here > there || here == there && f.InFlight(i) < f.InFlight(best) {
			best = i
		}
	}
	return best, func() {}
}

// Gateway is the gateway's own choice.
type Gateway struct {
	catalog *catalog.Catalog
	pools   *upstream.Pools
	now     time.Duration
}

// NewGateway returns the gateway's choice among servers of equal weight, by
// affinity or without.
func NewGateway(servers int, affinity bool, seed uint64) (*Gateway, error) {
	known, err := model(servers, affinity)
	if err != nil {
		return nil, err
	}
	g := &Gateway{catalog: known}
	g.pools = upstream.New(upstream.Config{
		Catalog: func() *catalog.Catalog { return g.catalog }, Secrets: noSecrets{},
		Now: func() time.Time { return time.Time{}.Add(g.now) }, Random: rand.New(rand.NewPCG(seed, 2)).Float64,
		Logger: slog.New(slog.DiscardHandler),
	})
	return g, nil
}

// Route chooses a server.
func (g *Gateway) Route(f *Fleet, call Call) (server int, done func()) {
	g.now = f.Now()
	lease, server := g.take(call.Account, call.Body)
	return server, func() {
		g.now = f.Now()
		lease.Release(upstream.Result{}, time.Time{}.Add(g.now))
	}
}

// take chooses an upstream for a chat, as the gateway does. It panics where that
// fails: the chats are the simulation's own, and its servers have no limit.
func (g *Gateway) take(account string, body []byte) (upstream.Lease, int) {
	snapshot := g.pools.Current()
	r, problem := request.Parse(catalog.Chat, body, request.Caller{Find: snapshot.Catalog.Inference})
	if problem != nil {
		panic(problem.Message)
	}
	call := upstream.Call{Account: account}
	if r.Model.Affinity {
		call.Affinity = r.Affinity(account, "")
	}
	lease, unavailable := snapshot.Pool(r.Model.ID).Take(context.Background(), &call)
	if unavailable != nil {
		panic(unavailable)
	}
	server, err := strconv.Atoi(lease.Name())
	if err != nil {
		panic(err)
	}
	return lease, server
}

// Leave returns which part of many conversations the gateway sends elsewhere when
// the last of the servers leaves: of those that were there, and of all others.
func Leave(servers int) (there, elsewhere float64, err error) {
	g, err := NewGateway(servers, true, 1)
	if err != nil {
		return 0, 0, err
	}
	const conversations = 8000
	place := func() []int {
		places := make([]int, conversations)
		for i := range places {
			lease, server := g.take("account", fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":"%d"}]}`, i))
			lease.Release(upstream.Result{}, time.Time{})
			places[i] = server
		}
		return places
	}
	before := place()
	if g.catalog, err = model(servers-1, true); err != nil {
		return 0, 0, err
	}
	for i, after := range place() {
		switch {
		case before[i] == servers-1:
			there += 1.0 / conversations
		case before[i] != after:
			elsewhere += 1.0 / conversations
		}
	}
	return there, elsewhere, nil
}

// model is a catalog with one model on servers that are named by their numbers.
func model(servers int, affinity bool) (*catalog.Catalog, error) {
	var rows strings.Builder
	fmt.Fprintf(&rows, `
limits: {video: {duration: 5m, width: 8, height: 8}, image: {pixels: 8}}
forms: {f: {fields: [{name: data, type: video}, {name: resolution, type: choice, values: [720p], default: 720p}]}}
models: [{id: media, kind: edit, form: f, fps: 20, sizes: {720p: 1280x720}}]
inference:
  - id: m
    routes: [chat]
    context_length: 1048576
    max_output_length: 1000
    affinity: %v
    upstreams:
`, affinity)
	for i := range servers {
		fmt.Fprintf(&rows, "      - {name: \"%d\", url: \"http://10.0.0.%d:8000\"}\n", i, i+1)
	}
	return catalog.Parse([]byte(rows.String()), "gen")
}

// noSecrets is of upstreams that need none.
type noSecrets struct{}

func (noSecrets) Secret(context.Context, string) (string, error) {
	return "", errors.New("there is no secret")
}
