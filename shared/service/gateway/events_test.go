package gateway

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"cutroom/shared/testkit/await"
)

const maxEvent = 4 << 20

func readEvents(source io.Reader) (events []string, err error) {
	var r eventReader
	r.reset(source, maxEvent)
	for {
		e, ok, err := r.next()
		switch {
		case ok:
			events = append(events, e.name+"|"+string(e.data))
		case err != nil:
			return events, err
		default:
			r.fill()
		}
	}
}

// Events are parsed as in the HTML standard, except that the last event may lack its empty line.
func TestEventsAreParsed(t *testing.T) {
	for _, c := range []struct {
		name, stream string
		want         []string
	}{
		{"none", "", nil},
		{"empty lines", "\n\r\n\r\r\n", nil},
		{"one", "data: a\n\n", []string{"|a"}},
		{"no space", "data:a\n\n", []string{"|a"}},
		{"only one space is dropped", "data:  a\n\n", []string{"| a"}},
		{"every line end", "data: a\r\rdata: b\r\n\r\ndata: c\n\ndata: d\r\n\n", []string{"|a", "|b", "|c", "|d"}},
		{"several lines", "data: a\ndata: b\r\ndata: c\n\n", []string{"|a b c"}},
		{"an event name", "event: error\ndata: a\n\ndata: b\n\n", []string{"error|a", "|b"}},
		{"an event name after the data", "data: a\nevent: error\n\n", []string{"error|a"}},
		{"no data", "event: ping\n\ndata\n\ndata:\n\n", nil},
		{"comments and unknown fields", ": c\n:\nid: 1\nretry: 2\nx: y\ndatum: z\ndata: a\n\n", []string{"|a"}},
		{"a byte order mark", "\ufeffdata: a\n\n", []string{"|a"}},
		{"a byte order mark later", "data: a\n\n\ufeffdata: b\n\n", []string{"|a"}},
		{"a colon in the data", "data: a: b\n\n", []string{"|a: b"}},
		{"no final empty line", "data: a\n\ndata: b\n", []string{"|a", "|b"}},
		{"no final line end", "data: a\n\ndata: b", []string{"|a", "|b"}},
		{"longer than the buffer", "data: " + strings.Repeat("x", 3*eventBuffer) + "\n\ndata: a\n\n", []string{"|" + strings.Repeat("x", 3*eventBuffer), "|a"}},
	} {
		for how, source := range map[string]io.Reader{
			"whole": strings.NewReader(c.stream), "by bytes": iotest.OneByteReader(strings.NewReader(c.stream)),
			"EOF with the last bytes": iotest.DataErrReader(strings.NewReader(c.stream)),
		} {
			if got, err := readEvents(source); err != io.EOF || !slices.Equal(got, c.want) {
				t.Errorf("%s, %s: got %.100q, %v, want %.100q", c.name, how, got, err, c.want)
			}
		}
	}
}

func TestIncompleteEventsFail(t *testing.T) {
	events, err := readEvents(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("data: a\n\ndata: b\n\n"))))
	if err != iotest.ErrTimeout || len(events) != 0 {
		t.Errorf("got %q, %v: an incomplete event needs a proper end", events, err)
	}
	if _, err := readEvents(strings.NewReader("data: " + strings.Repeat("x", maxEvent))); !errors.Is(err, errEventTooLong) {
		t.Errorf("an event over the limit: %v", err)
	}
	if _, err := readEvents(silent{}); err != io.ErrNoProgress {
		t.Errorf("a reader without bytes: %v", err)
	}
}

// An event with two million lines takes far less than await.Max, because the time is not quadratic.
func TestLinesMayEndWithCR(t *testing.T) {
	read := make(chan []string, 1)
	go func() {
		events, _ := readEvents(strings.NewReader("data: x\n" + strings.Repeat("a\r", maxEvent/2-16) + "\r\r"))
		read <- events
	}()
	if events := await.Receive(t, "a long event", read); len(events) != 1 {
		t.Errorf("got %d events", len(events))
	}
}

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

// The result does not depend on where the transport splits the stream.
func FuzzEvents(f *testing.F) {
	f.Add("data: a\r\n\r\ndata: b\rdata: c\n\n: x\n\nevent: e\ndata: d", 3)
	f.Add("\ufeffdata: é\n\n\n\r\n\rdata", 1)
	f.Fuzz(func(t *testing.T, stream string, size int) {
		whole, err := readEvents(strings.NewReader(stream))
		if err != io.EOF {
			t.Fatal(err)
		}
		split, err := readEvents(&pieces{strings.NewReader(stream), 1 + (size&0x7fffffff)%7})
		if err != io.EOF || !slices.Equal(whole, split) {
			t.Errorf("complete: %q, split: %q, %v", whole, split, err)
		}
		for _, e := range whole {
			if strings.ContainsAny(e, "\r\n") {
				t.Errorf("the event %q has several lines", e)
			}
		}
	})
}

type pieces struct {
	io.Reader
	size int
}

func (p *pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), p.size)]) }
