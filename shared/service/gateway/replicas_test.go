package gateway_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
)

type names struct {
	mu        sync.Mutex
	addresses []netip.Addr
	records   []*net.SRV
	err       error
	lookups   int
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lookups++
	switch {
	case n.err != nil:
		return nil, n.err
	case host == "replica.localhost":
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	case host == "models.localhost" || host == "models.internal":
		return slices.Clone(n.addresses), nil
	}
	return nil, errors.New("no such host")
}

func (n *names) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lookups++
	return "", slices.Clone(n.records), n.err
}

func (n *names) set(err error, servers ...*modelServer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err, n.records, n.addresses = err, nil, nil
	for _, s := range servers {
		address := netip.MustParseAddrPort(s.listener.Addr().String())
		n.addresses = append(n.addresses, address.Addr())
		n.records = append(n.records, &net.SRV{Target: "replica.localhost.", Port: address.Port(), Weight: 1})
	}
}

func (n *names) asked() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lookups
}

const serviceRow = `
  - {id: small, routes: [chat], context_length: 8192, max_output_length: 1000, affinity: false, upstreams: [{name: fleet, url: "srv+http://_http._tcp.models.internal", model: weights}]}
`

// If a server is unreachable, its name is looked up again, and the call goes to another server.
func TestUnreachableReplicaIsReplaced(t *testing.T) {
	gone, up := refusing(t), newUpstream(t, always(200, whole))
	port, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(gone.url, "http://127.0.0.1:"), "/v1"))
	must(t, err)
	known := &names{}
	known.set(nil, up)
	for range 5 { // more than the attempts of one call
		known.records = append(known.records, &net.SRV{Target: "replica.localhost.", Port: uint16(port)})
		port--
	}
	w := newWorld(t, setup{rows: serviceRow, resolver: known})
	for range 8 {
		if got := w.chat(plain); got.status != 200 {
			t.Errorf("got %+v", got)
		}
	}
	before := known.asked()
	known.set(nil, up)
	w.wait(5 * time.Second)
	w.eventually("one replica", func() bool {
		if got := w.chat(plain); got.status != 200 {
			t.Errorf("got %+v", got)
		}
		return w.gateway.Health()[0].Replicas == 1 && known.asked() > before
	})
}

func TestUnsafeAddressesAreNotCalled(t *testing.T) {
	server := newUpstream(t, always(200, whole))
	_, port, err := net.SplitHostPort(server.listener.Addr().String())
	must(t, err)
	row := strings.Replace(serviceRow, "srv+http://_http._tcp.models.internal", "dns+http://NAME:"+port, 1)
	known := &names{}
	for _, text := range []string{"127.0.0.1", "0.0.0.0", "::1", "::", "169.254.169.254", "fe80::1", "224.0.0.1", "255.255.255.255",
		"::ffff:127.0.0.1", "::ffff:169.254.169.254", "ff02::1"} {
		known.addresses = append(known.addresses, netip.MustParseAddr(text))
	}
	w := newWorld(t, setup{rows: strings.Replace(row, "NAME", "models.internal", 1), resolver: known})
	if got := w.chat(plain); got.status != 502 || len(server.seen()) > 0 {
		t.Errorf("got %+v", got)
	}
	w.load(strings.Replace(row, "NAME", "models.localhost", 1))
	known.mu.Lock()
	known.addresses = known.addresses[:1]
	known.mu.Unlock()
	if got := w.chat(plain); got.status != 200 {
		t.Errorf("a name of this machine: got %+v", got)
	}
	if seen := server.seen(); len(seen) != 1 || seen[0].host != "models.localhost:"+port {
		t.Errorf("the server saw %+v", seen)
	}
}

func TestHangingLookupBlocksNoCall(t *testing.T) {
	server := newUpstream(t, always(200, whole))
	known := &names{}
	known.set(nil, server)
	w := newWorld(t, setup{rows: serviceRow, resolver: hanging{known}})
	if got := w.chat(plain); got.status != 200 {
		t.Fatalf("got %+v", got)
	}
	known.set(errHang)
	w.wait(time.Minute)
	for range 3 {
		if got := w.chat(plain); got.status != 200 {
			t.Errorf("got %+v", got)
		}
	}
	w.wait(time.Hour) // the answer is too old now
	for range 3 {
		if got := w.chat(plain); got.status != 200 {
			t.Errorf("with an outdated answer: got %+v", got)
		}
	}
	w.gateway.Close() // Close stops the lookup and waits for it
}

var errHang = errors.New("hang")

type hanging struct{ *names }

func (h hanging) LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error) {
	cname, records, err := h.names.LookupSRV(ctx, service, proto, name)
	if errors.Is(err, errHang) {
		<-ctx.Done()
		err = ctx.Err()
	}
	return cname, records, err
}

func TestDiscoveryURLsAreValidated(t *testing.T) {
	for url, want := range map[string]string{
		"dns+http://vllm.internal:8000":    "dns http://vllm.internal:8000/v1",
		"dns+https://vllm.internal/api/v3": "dns https://vllm.internal/api/v3",
		"srv+http://_http._tcp.vllm":       "srv http://_http._tcp.vllm/v1",
		"http://vllm.internal":             " http://vllm.internal/v1",
		"dns+http://10.0.0.1":              "followed by a URL with a host name",
		"dns+http://[::1]:8000":            "followed by a URL with a host name",
		"srv+http://vllm:8000":             "must not have a port",
		"dns+ftp://vllm":                   "must be an http or https URL",
		"dns+embedded:":                    "must be an http or https URL",
		"dns+dns+http://vllm":              "must be an http or https URL",
	} {
		known, err := catalog.Parse([]byte(media+strings.Replace(serviceRow, "srv+http://_http._tcp.models.internal", url, 1)), "gen")
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			u := known.InferenceModels()[0].Upstreams[0]
			got = string(u.Discovery) + " " + u.URL
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s", url, got)
		}
	}
}
