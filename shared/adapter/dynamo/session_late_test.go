package dynamo_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

// gate delays the first call of an operation, as a network or a suspended process would.
type gate struct {
	next      http.RoundTripper
	operation string
	held      chan *heldCall
}

type heldCall struct {
	gate    *gate
	request *http.Request
	body    []byte
	// The caller gets an error if the channel fate receives false.
	fate chan bool
}

func (g *gate) RoundTrip(request *http.Request) (*http.Response, error) {
	if awstest.Operation(request) != g.operation {
		return g.next.RoundTrip(request)
	}
	g.operation = ""
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	call := &heldCall{g, request, body, make(chan bool)}
	g.held <- call
	if !<-call.fate {
		return nil, io.ErrUnexpectedEOF
	}
	return call.send()
}

func (c *heldCall) send() (*http.Response, error) {
	late := c.request.Clone(context.WithoutCancel(c.request.Context()))
	late.Body = io.NopCloser(bytes.NewReader(c.body))
	return c.gate.next.RoundTrip(late)
}

func (c *heldCall) arrive(t *testing.T) {
	t.Helper()
	answer, err := c.send()
	conformance.OK(t, err)
	answer.Body.Close()
}

// rivals are two instances on one store. The first can make late calls.
type rivals struct {
	*gate
	clock           *storeClock
	delayed, prompt *dynamo.Sessions
}

func newRivals(t *testing.T, cloud *awstest.Cloud) *rivals {
	t.Helper()
	table, clock := cloud.MakeTable(t, "sessions"), &storeClock{now: time.Now()}
	r := &rivals{gate: &gate{next: clock, held: make(chan *heldCall, 1)}, clock: clock}
	open := func(transport http.RoundTripper) *dynamo.Sessions {
		config := cloud.Config()
		config.HTTPClient = &http.Client{Transport: transport}
		return dynamo.NewSessions(dynamo.NewClient(config), table)
	}
	r.delayed, r.prompt = open(r.gate), open(clock)
	return r
}

// holds runs a call and delays its first request of the given operation. It returns that request and a channel for
// the call's result.
func (r *rivals) holds(operation string, call func() error) (*heldCall, <-chan error) {
	r.operation = operation
	outcome := make(chan error, 1)
	go func() { outcome <- call() }()
	return <-r.held, outcome
}

// A renewal may arrive after the next renewal. The request that marks an epoch as dead may arrive after the epoch was
// renewed.
func TestLateSessionCallsChangeNothing(t *testing.T) {
	cloud := local.Cloud(t)
	const account, mine, theirs = "acme", "epoch-one", "epoch-two"
	slot := func(id, epoch string) session.Slot { return session.Slot{ID: id, Account: account, Epoch: epoch} }
	begin := func(t *testing.T) *rivals {
		r := newRivals(t, cloud)
		conformance.OK(t, r.delayed.Begin(t.Context(), mine, ""))
		conformance.OK(t, r.prompt.Begin(t.Context(), theirs, ""))
		conformance.OK(t, r.delayed.Take(t.Context(), slot("a", mine), 1))
		return r
	}
	active := func(t *testing.T, r *rivals, want int) {
		t.Helper()
		n, err := r.prompt.Active(t.Context(), account)
		conformance.OK(t, err)
		if n != want {
			t.Errorf("%d sessions are active, want %d", n, want)
		}
	}

	t.Run("a renewal arrives after the next", func(t *testing.T) {
		r := begin(t)
		late, renewed := r.holds("DynamoDB.UpdateItem", func() error { return r.delayed.Renew(t.Context(), mine) })
		late.fate <- false // the client retries the call
		conformance.OK(t, <-renewed)
		r.clock.pass(session.RenewEvery)
		conformance.OK(t, r.delayed.Renew(t.Context(), mine))
		late.arrive(t)
		r.clock.pass(session.TakeAfter - time.Second)
		conformance.OK(t, r.prompt.Renew(t.Context(), theirs))
		active(t, r, 1)
		conformance.Fails(t, r.prompt.Take(t.Context(), slot("b", theirs), 1), fault.Limited)
	})

	t.Run("a renewed epoch is marked as dead", func(t *testing.T) {
		r := begin(t)
		r.clock.pass(session.TakeAfter)
		conformance.OK(t, r.prompt.Renew(t.Context(), theirs))
		late, taken := r.holds("DynamoDB.UpdateItem",
			func() error { return r.delayed.Take(t.Context(), slot("b", theirs), 1) })
		conformance.OK(t, r.prompt.Renew(t.Context(), mine))
		late.fate <- true
		conformance.Fails(t, <-taken, fault.Limited)
		conformance.OK(t, r.prompt.Renew(t.Context(), mine))
		active(t, r, 1)
	})
}
