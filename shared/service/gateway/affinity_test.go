package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const fourRows = `
  - {id: small, routes: [chat, completions], context_length: 8192, max_output_length: 1000, upstreams: [{name: a, url: URL0}, {name: b, url: URL1}, {name: c, url: URL2}, {name: d, url: URL3}]}
`

func fourServers(t *testing.T) []*modelServer {
	t.Helper()
	var all []*modelServer
	for range 4 {
		all = append(all, newUpstream(t, always(200, whole)))
	}
	return all
}

func turn(conversation, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"model":"small","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Talk %d."}`, conversation)
	for i := range n {
		fmt.Fprintf(&b, `,{"role":"assistant","content":"Answer %d."},{"role":"user","content":"Go on."}`, i)
	}
	return b.String() + "]}"
}

// On every instance, all turns of a conversation go to the same server. If that server fails, the
// conversation moves to others and returns later.
func TestConversationsStayWithAServer(t *testing.T) {
	servers := fourServers(t)
	one := newWorld(t, setup{rows: fourRows, upstreams: servers})
	other := newWorld(t, setup{rows: fourRows, upstreams: servers})
	home, down := map[int]int{}, false
	count := func() []int {
		n := make([]int, len(servers))
		for i, s := range servers {
			n[i] = len(s.seen())
		}
		return n
	}
	place := func(w *world, body string, fields ...string) int {
		t.Helper()
		before := count()
		if got := w.chat(body, fields...); got.status != 200 {
			t.Fatalf("got %+v", got)
		}
		for i, n := range count() {
			if n > before[i] && (i > 0 || !down) {
				return i
			}
		}
		t.Fatal("no server was called")
		return 0
	}
	// The servers' ports are random. With 72 conversations, the chance that one of four servers
	// gets none is 1 in 200 million.
	const talks = 72
	for talk := range talks {
		home[talk] = place(one, turn(talk, 0))
		for n := 1; n < 3; n++ {
			if got := place(other, turn(talk, n)); got != home[talk] {
				t.Errorf("turn %d of conversation %d went to server %d, not %d", n, talk, got, home[talk])
			}
		}
	}
	for i, n := range count() {
		if n == 0 {
			t.Errorf("server %d had no conversation", i)
		}
	}
	servers[0].now(always(503, `{}`))
	down = true
	for talk := range talks {
		if got := place(one, turn(talk, 3)); home[talk] != 0 && got != home[talk] {
			t.Errorf("conversation %d moved from server %d to %d", talk, home[talk], got)
		}
	}
	servers[0].now(always(200, whole))
	down = false
	one.wait(time.Hour)
	for talk := range talks {
		if got := place(one, turn(talk, 4)); got != home[talk] {
			t.Errorf("conversation %d is on server %d, want %d", talk, got, home[talk])
		}
	}
	named := place(one, turn(0, 0), "X-Session-Affinity: s1")
	for talk := range 8 {
		if got := place(other, turn(talk, 1), "X-Session-Affinity: s1"); got != named {
			t.Errorf("a named session went to server %d, not %d", got, named)
		}
	}
}
