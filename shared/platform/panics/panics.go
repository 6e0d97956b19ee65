// Package panics confines a panic to the work that caused it.
//
// A panic in a goroutine ends the process and all its other work. Therefore every goroutine that works on untrusted
// data uses a function from this package. The process's own loops do not, because after a fault in such a loop,
// restarting is better than hiding the fault.
package panics

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

type Panic struct {
	Value any
	Stack string
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v\n%s", p.Value, p.Stack) }

// newPanic wraps a recovered value with the stack. If a [Group] raised a panic again, it keeps the original stack.
func newPanic(value any) *Panic {
	if p, passed := value.(*Panic); passed {
		return p
	}
	return &Panic{Value: value, Stack: string(debug.Stack())}
}

// Error sets err to a [*Panic] if the function that defers it panics.
//
//	func work() (err error) {
//		defer panics.Error(&err)
func Error(err *error) {
	if value := recover(); value != nil {
		*err = newPanic(value)
	}
}

// Run calls a function and reports whether it returned. If it panics, Run logs the panic with the name and the stack.
func Run(logger *slog.Logger, name string, do func()) (returned bool) {
	defer func() {
		if value := recover(); value != nil {
			p := newPanic(value)
			logger.Error("recovered from a panic", "in", name, "panic", fmt.Sprint(p.Value), "stack", p.Stack)
		}
	}()
	do()
	return true
}

// Group moves a panic in one of its goroutines to the goroutine that waits for the group.
type Group struct {
	running  sync.WaitGroup
	panicked atomic.Pointer[Panic]
}

func (g *Group) Go(do func()) {
	g.running.Go(func() {
		defer func() {
			if value := recover(); value != nil {
				g.panicked.CompareAndSwap(nil, newPanic(value))
			}
		}()
		do()
	})
}

func (g *Group) Wait() {
	g.running.Wait()
	if p := g.panicked.Load(); p != nil {
		panic(p)
	}
}
