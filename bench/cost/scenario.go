package cost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"cutroom/shared/app/awscost"
	"cutroom/shared/testkit/lambdatest"
)

// tally adds up what the runs of a scenario use.
type tally struct {
	w    *world
	name string
	runs int
	// taps are the proxies of its programs.
	taps  []*tap
	parts []*part
	// others are calls and quantities that no tap sees.
	calls  map[string]float64
	others awscost.Quantities
}

// part is a function that a scenario invokes.
type part struct {
	name     string
	function *lambdatest.Function
	// api says that API Gateway is in front of it.
	api    bool
	billed []float64
	// logged is how long the log was when counting began.
	logged int
}

func (w *world) newTally(name string) *tally {
	return &tally{w: w, name: name, calls: map[string]float64{}, others: awscost.Quantities{}}
}

// function starts a function as a part of the scenario.
func (t *tally) function(ctx context.Context, name string, api bool) (*part, error) {
	through := t.w.newTap()
	f, err := t.w.start(ctx, name, through)
	if err != nil {
		return nil, err
	}
	p := &part{name: name, function: f, api: api}
	t.taps, t.parts = append(t.taps, through), append(t.parts, p)
	return p, nil
}

// begin discards the first calls, which open connections.
func (t *tally) begin() {
	for _, tap := range t.taps {
		tap.reset()
	}
	for _, p := range t.parts {
		p.billed, p.logged = nil, len(p.function.Log())
	}
	t.calls, t.others, t.runs = map[string]float64{}, awscost.Quantities{}, 0
}

// bill records how long an invocation took: Lambda counts milliseconds, rounded up
// (aws.amazon.com/lambda/pricing).
func (p *part) bill(begun time.Time) {
	p.billed = append(p.billed, math.Ceil(float64(time.Since(begun).Microseconds())/1000))
}

// request sends the function a client's request and returns the whole answer. It fails if
// the answer is not a success.
func (p *part) request(ctx context.Context, r request) ([]byte, error) {
	event, err := r.event()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	answer, err := p.function.Request(ctx, event)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	p.bill(begun)
	if answer.Status != 200 {
		return nil, fmt.Errorf("%s: status %d: %.300s", p.name, answer.Status, body)
	}
	return body, nil
}

// invoke invokes the function with an event of AWS.
func (p *part) invoke(ctx context.Context, event []byte) error {
	begun := time.Now()
	if _, err := p.function.Invoke(ctx, event); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	p.bill(begun)
	return nil
}

// The lines that Lambda itself writes for an invocation, at their longest (Lambda
// Developer Guide, "Viewing CloudWatch logs for Lambda functions").
const lambdaLines = `START RequestId: c793869b-ee49-115b-a5b6-4fd21e8dedac Version: $LATEST
END RequestId: c793869b-ee49-115b-a5b6-4fd21e8dedac
REPORT RequestId: c793869b-ee49-115b-a5b6-4fd21e8dedac	Duration: 12345.67 ms	Billed Duration: 12346 ms	Memory Size: 512 MB	Max Memory Used: 128 MB	
`

// logBytes returns what CloudWatch counts for a text: its bytes, and 26 for each line
// (CloudWatch Logs API Reference, "PutLogEvents").
func logBytes(text string) int { return len(text) + 26*strings.Count(text, "\n") }

// scenario returns what one run uses. A duration is the median, because other load
// disturbs a few.
//
// Errors: a tap did not understand a call.
func (t *tally) scenario(title string) (awscost.Scenario, error) {
	s := awscost.Scenario{
		Name: t.name, Title: title, Runs: t.runs, Calls: map[string]float64{}, Quantities: awscost.Quantities{},
	}
	once := 1 / float64(t.runs)
	counted := []map[string]float64{t.calls}
	s.Quantities.Add(t.others, once)
	for _, tap := range t.taps {
		calls, quantities, err := tap.taken()
		if err != nil {
			return s, err
		}
		counted = append(counted, calls)
		s.Quantities.Add(quantities, once)
	}
	for _, calls := range counted {
		for call, n := range calls {
			s.Calls[call] += n * once
		}
	}
	for _, p := range t.parts {
		if len(p.billed) != t.runs {
			return s, errors.New(p.name + " was not invoked once a run")
		}
		slices.Sort(p.billed)
		i := awscost.Invocation{
			Function: p.name, Memory: t.w.memory[p.name], Billed: p.billed[len(p.billed)/2],
		}
		s.Functions = append(s.Functions, i)
		logged := float64(logBytes(p.function.Log()[p.logged:]))*once + float64(logBytes(lambdaLines))
		if p.api {
			s.Quantities[awscost.APIRequest]++
			logged += float64(t.w.accessLog)
		}
		s.Quantities.Add(awscost.Quantities{
			awscost.FunctionRequest: 1, awscost.FunctionTime: float64(i.Memory) / 1024 * i.Billed / 1000,
			awscost.LogByte: logged,
		}, 1)
	}
	s.Tidy()
	return s, nil
}
