package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/testkit/await"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// discoveredRow is a model whose servers are found by SRV records. addressedRow is a model
	// whose servers are found by address records.
	discoveredRow = `
  - {id: small, routes: [chat], context_length: 8192, max_output_length: 1000, affinity: false, upstreams: [{name: fleet, url: "srv+http://_http._tcp.fleet.localhost", model: weights}]}
`
	addressedRow = `
  - {id: small, routes: [chat], context_length: 8192, max_output_length: 1000, affinity: false, upstreams: [{name: fleet, url: "dns+http://fleet.localhost:PORT", model: weights}]}
`
	fleetName   = "fleet.localhost"
	serviceName = "_http._tcp.fleet.localhost"
)

func services(servers ...*modelServer) zone {
	z := zone{addresses: map[string][]netip.Addr{}, services: map[string][]dnsmessage.SRVResource{}}
	for i, s := range servers {
		at := netip.MustParseAddrPort(s.listener.Addr().String())
		z.add(fmt.Sprintf("replica-%d.localhost", i), at.Port(), at.Addr())
	}
	return z
}

func (z zone) add(target string, port uint16, addresses ...netip.Addr) {
	z.addresses[target] = addresses
	z.services[serviceName] = append(z.services[serviceName],
		dnsmessage.SRVResource{Weight: 1, Port: port, Target: dnsmessage.MustNewName(target + ".")})
}

func addressed(addresses ...netip.Addr) zone {
	return zone{addresses: map[string][]netip.Addr{fleetName: addresses}}
}

func (w *world) replicas() int { return w.gateway.Health()[0].Replicas }

// changes returns how often the set of servers behind a name has changed.
func (w *world) changes() int {
	return strings.Count(w.log.String(), "the addresses of a model server changed")
}

// discovered makes calls until n servers are known for the name.
func (w *world) discovered(what string, n int) {
	w.t.Helper()
	w.eventually(what, func() bool {
		w.wait(15 * time.Second) // triggers the next lookup
		if got := w.chat(plain); got.status != 200 {
			w.t.Errorf("%s: got %+v", what, got)
		}
		return w.replicas() == n
	})
}

// lookedUp makes calls until the name server has received this many queries.
func (w *world) lookedUp(what string, known *nameServer, questions int) {
	w.t.Helper()
	w.eventually(what, func() bool {
		w.wait(15 * time.Second)
		if got := w.chat(plain); got.status != 200 {
			w.t.Errorf("%s: got %+v", what, got)
		}
		asked, _ := known.questions()
		return asked >= questions
	})
}

// relaying starts a server whose streams continue until the test ends them.
func relaying(t *testing.T) (server *modelServer, open chan struct{}) {
	open = make(chan struct{})
	server = newUpstream(t, func(c *call) {
		if !strings.Contains(c.body, `"stream":true`) {
			c.json(200, whole)
			return
		}
		c.stream()
		c.write("data: " + chunk("one") + "\n\n")
		select {
		case <-open:
			for _, data := range []string{chunk("two"), last, used, done} {
				c.write("data: " + data + "\n\n")
			}
			c.end()
		case <-c.left:
		}
	})
	return server, open
}

// While a name server's answers change, fail or are late, streams in progress continue, and every
// call finds a server.
func TestStreamsSurviveNameChanges(t *testing.T) {
	known := newNameServer(t)
	var servers []*modelServer
	var ends []chan struct{}
	for range 4 {
		server, end := relaying(t)
		servers, ends = append(servers, server), append(ends, end)
	}
	known.now(services(servers[0]))
	w := newWorld(t, setup{rows: discoveredRow, resolver: known})
	var streams sync.WaitGroup
	begin := func() {
		response := w.open(t.Context(), asking)
		streams.Go(func() {
			text, err := io.ReadAll(response.Body)
			if err != nil || !bytes.Contains(text, []byte(`"two"`)) || !bytes.HasSuffix(text, []byte("data: [DONE]\n\n")) {
				t.Errorf("a stream ended with %v: %s", err, text)
			}
		})
	}
	late := make(chan struct{})
	stages := []struct {
		name string
		zone zone
		// servers is the expected number of servers. fails reports whether lookups fail.
		servers int
		fails   bool
	}{
		{"one", services(servers[0]), 1, false},
		{"a server is added", services(servers[0], servers[1]), 2, false},
		{"the first server is removed", services(servers[1], servers[2]), 2, false},
		{"the name is removed", zone{}, 2, true},
		{"all servers exist", services(servers...), 4, false},
		{"the name server fails", zone{code: dnsmessage.RCodeServerFailure}, 4, true},
		{"the name server rejects queries", zone{code: dnsmessage.RCodeRefused}, 4, true},
		{"two servers exist", services(servers[2:]...), 2, false},
		{"the records have another type", zone{addresses: map[string][]netip.Addr{serviceName: {{}}}}, 2, true},
		{"the alias has no target", zone{aliases: map[string]string{serviceName: serviceName}}, 2, true},
		{"the name server is slow", zone{late: late}, 2, true},
	}
	// The host names always resolve, because a lookup that started in the previous stage may still ask for them.
	hosts := services(servers...).addresses
	for _, stage := range stages {
		begin()
		if stage.zone.addresses == nil {
			stage.zone.addresses = map[string][]netip.Addr{}
		}
		for host, addresses := range hosts {
			if _, there := stage.zone.addresses[host]; !there {
				stage.zone.addresses[host] = addresses
			}
		}
		before := known.now(stage.zone)
		if !stage.fails {
			w.discovered(stage.name, stage.servers)
			continue
		}
		w.lookedUp(stage.name+": a lookup", known, before+1)
		if got := w.replicas(); got != stage.servers {
			t.Errorf("%s: %d servers, want %d", stage.name, got, stage.servers)
		}
	}
	known.now(services(servers[0]))
	close(late)
	begin()
	for _, end := range ends {
		close(end)
	}
	streams.Wait()
	w.discovered("the first one is back", 1)
}

func everywhere(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	must(t, err)
	probe, err := net.Dial("tcp", fmt.Sprintf("127.1.2.3:%d", listener.Addr().(*net.TCPAddr).Port))
	if err != nil {
		listener.Close()
		t.Skip("this machine has one address of loopback:", err)
	}
	probe.Close()
	return listener
}

// Hundreds of addresses are returned over TCP. The gateway always uses the same 256.
func TestNumberOfAddressesIsLimited(t *testing.T) {
	listener := everywhere(t)
	var mu sync.Mutex
	called := map[string]int{}
	serveModels(t, listener, func(c *call) {
		mu.Lock()
		defer mu.Unlock()
		host, _, _ := net.SplitHostPort(c.LocalAddr().String())
		called[host]++
		c.json(200, whole)
	})
	var addresses []netip.Addr
	for i := range 300 {
		addresses = append(addresses, netip.AddrFrom4([4]byte{127, 1, byte(i / 100), byte(1 + i%100)}))
	}
	known := newNameServer(t)
	known.now(addressed(addresses...))
	row := strings.Replace(addressedRow, "PORT", fmt.Sprint(listener.Addr().(*net.TCPAddr).Port), 1)
	w := newWorld(t, setup{rows: row, resolver: known})
	w.discovered("all that are used", 256)
	for range 3 { // the order differs each time
		addresses = append(addresses[100:], addresses[:100]...)
		before := known.now(addressed(addresses...))
		w.lookedUp("another lookup", known, before+3)
	}
	if _, overTCP := known.questions(); overTCP == 0 {
		t.Error("got no question over TCP")
	}
	for range 64 {
		if got := w.chat(plain); got.status != 200 {
			t.Errorf("got %+v", got)
		}
	}
	mu.Lock()
	if len(called) < 32 {
		t.Errorf("the calls went to %d addresses: %v", len(called), called)
	}
	clear(called)
	mu.Unlock()
	before := known.now(zone{addresses: map[string][]netip.Addr{fleetName: addresses}, noTCP: true})
	w.lookedUp("a lookup that is cut short", known, before+3)
	if got := w.replicas(); got != 256 {
		t.Errorf("%d servers after a truncated answer", got)
	}
	known.now(addressed(netip.MustParseAddr("127.9.9.1"), netip.MustParseAddr("127.9.9.2")))
	w.discovered("two addresses", 2)
	if got := w.changes(); got != 2 {
		t.Errorf("the servers changed %d times", got)
	}
	mu.Lock()
	clear(called)
	mu.Unlock()
	for range 16 {
		w.chat(plain)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(called) != 2 || called["127.9.9.1"] == 0 || called["127.9.9.2"] == 0 {
		t.Errorf("the calls went to %v", called)
	}
}

// The records' TTL has no effect.
func TestNamesAreLookedUpRegularly(t *testing.T) {
	for _, ttl := range []uint32{0, 86400} {
		t.Run(fmt.Sprint(ttl), func(t *testing.T) {
			t.Parallel()
			one, other := newUpstream(t, always(200, whole)), newUpstream(t, always(200, whole))
			known := newNameServer(t)
			z := services(one)
			z.ttl = ttl
			known.now(z)
			w := newWorld(t, setup{rows: discoveredRow, resolver: known})
			w.stopClock()
			w.discovered("one", 1)
			z = services(other)
			z.ttl = ttl
			before := known.now(z)
			for range 40 {
				if got := w.chat(plain); got.status != 200 {
					t.Errorf("got %+v", got)
				}
			}
			if asked, _ := known.questions(); asked != before || len(other.seen()) > 0 {
				t.Errorf("%d questions within ten seconds", asked-before)
			}
			w.wait(15 * time.Second)
			w.eventually("a call to the other server", func() bool { w.chat(plain); return len(other.seen()) > 0 })
		})
	}
}

// Calls wait for the first answer about a name, even if it contains aliases. They fail if the name does not exist.
func TestCallsWaitForFirstLookup(t *testing.T) {
	server := newUpstream(t, always(200, whole))
	at := netip.MustParseAddrPort(server.listener.Addr().String())
	known := newNameServer(t)
	w := newWorld(t, setup{rows: strings.Replace(addressedRow, "PORT", fmt.Sprint(at.Port()), 1), resolver: known})
	if got := w.chat(plain); got.status != 502 || !strings.Contains(got.body, "upstream_error") {
		t.Errorf("an unknown name: got %+v", got)
	}
	late := make(chan struct{})
	before := known.now(zone{
		late: late, aliases: map[string]string{fleetName: "models.localhost", "models.localhost": "rack-7.localhost"},
		addresses: map[string][]netip.Addr{"rack-7.localhost": {at.Addr()}},
	})
	w.wait(15 * time.Second)
	waiting := w.chatAs(t.Context(), studio, "early")
	w.eventually("a lookup", func() bool { asked, _ := known.questions(); return asked > before })
	select {
	case got := <-waiting:
		t.Errorf("a call did not wait for the name: got %+v", got)
	default:
	}
	close(late)
	if got := await.Receive(t, "waiting", waiting); got.status != 200 {
		t.Errorf("after the answer: got %+v", got)
	}
	if seen := server.seen(); len(seen) != 1 || seen[0].host != fleetName+":"+fmt.Sprint(at.Port()) {
		t.Errorf("the server saw %+v", seen)
	}
}

// Hundreds of SRV records lead to the same 256 servers on each lookup. Targets that do not exist do
// not affect others.
func TestNumberOfServicesIsLimited(t *testing.T) {
	listener := everywhere(t)
	serveModels(t, listener, always(200, whole))
	port := uint16(listener.Addr().(*net.TCPAddr).Port)
	z := services()
	for i := range 300 {
		z.add(fmt.Sprintf("many-%03d.localhost", i), port, netip.AddrFrom4([4]byte{127, 2, byte(i / 100), byte(1 + i%100)}))
	}
	known := newNameServer(t)
	known.now(z)
	w := newWorld(t, setup{rows: discoveredRow, resolver: known})
	w.discovered("all that are used", 256)
	for range 3 {
		before, _ := known.questions()
		w.lookedUp("another lookup", known, before+257)
	}
	if got := w.changes(); got != 1 {
		t.Errorf("the servers changed %d times with the same answer", got)
	}
	few := services()
	few.add("gone.localhost", port)
	delete(few.addresses, "gone.localhost")
	few.add("one.localhost", port, netip.MustParseAddr("127.3.3.1"))
	few.add("other.localhost", port, netip.MustParseAddr("127.3.3.2"))
	known.now(few)
	w.discovered("those that have an address", 2)
}
