package conformance_test

import (
	"context"
	"sync"
	"testing"

	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/conformance"
)

// Names is an example of an interface with several adapters.
type Names interface {
	// Take reserves a name.
	//
	// Errors: fault.Conflict if the name is already reserved.
	Take(ctx context.Context, name string) error
}

// test is one statement about Names. Each suite declares its own type.
type test struct {
	says string
	run  func(t *testing.T, names Names)
}

func (s test) Says() string { return s.says }

// RunNames is the suite. Package namestest would export it as Run. Each test calls the function open for a new store.
func RunNames(t *testing.T, open func(t *testing.T) Names) {
	conformance.Run(t, func(t *testing.T, _ string, one test) { one.run(t, open(t)) },
		conformance.About("taking", []test{
			{"a name is taken once", func(t *testing.T, names Names) {
				ctx := conformance.Context(t)
				conformance.OK(t, names.Take(ctx, "a"))
				conformance.Fails(t, names.Take(ctx, "a"), fault.Conflict)
			}},
			{"one of many concurrent callers takes the name", func(t *testing.T, names Names) {
				ctx := conformance.Context(t)
				errs := conformance.Race(20, func(int) error { return names.Take(ctx, "a") })
				if won := conformance.Winners(t, errs, fault.Conflict); len(won) != 1 {
					t.Errorf("%d callers won", len(won))
				}
			}},
		}),
	)
}

type inMemory struct {
	mu    sync.Mutex
	taken map[string]bool
}

func (m *inMemory) Take(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken[name] {
		return fault.New(fault.Conflict, "The name is taken.")
	}
	m.taken[name] = true
	return nil
}

// An interface has one suite, which is its specification. Each adapter runs it from a test of a
// few lines, like this one.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestNames(t *testing.T)
		RunNames(t, func(*testing.T) Names { return &inMemory{taken: map[string]bool{}} })
	}
}

func TestExampleSuitePasses(t *testing.T) {
	RunNames(t, func(*testing.T) Names { return &inMemory{taken: map[string]bool{}} })
}
