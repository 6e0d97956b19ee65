// Package contain keeps a panic within the work that caused it.
//
// A goroutine that panics ends the whole process, and with it all other work. Every goroutine that
// works on untrusted data therefore starts with a function of this package. The process's own
// loops, which touch no such data, do not: after a fault there a restart is better than hiding it.
package contain

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

type Panic struct {
	Value any
	// Stack is the stack of the goroutine that panicked, for the log.
	Stack string
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v\n%s", p.Value, p.Stack) }

// newPanic returns the error of a recovered value. A panic that a [Group] passed on
// keeps the stack of its origin.
func newPanic(value any) *Panic {
	if p, passed := value.(*Panic); passed {
		return p
	}
	return &Panic{Value: value, Stack: string(debug.Stack())}
}

// Error sets err to a [*Panic] if the function that defers it panics.
//
//	func work() (err error) {
//		defer contain.Error(&err)
func Error(err *error) {
	if value := recover(); value != nil {
		*err = newPanic(value)
	}
}

// Run calls do, and reports whether it returned. It logs a panic under the name, with the stack.
func Run(logger *slog.Logger, name string, do func()) (returned bool) {
	defer func() {
		if value := recover(); value != nil {
			p := newPanic(value)
			logger.Error("a panic was contained", "in", name, "panic", fmt.Sprint(p.Value), "stack", p.Stack)
		}
	}()
	do()
	return true
}

// Group is a group of goroutines for parts of one piece of work. A panic in one of them becomes a
// panic of the goroutine that waits for them.
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

// Wait waits until all have ended, and panics with the first panic among them.
func (g *Group) Wait() {
	g.running.Wait()
	if p := g.panicked.Load(); p != nil {
		panic(p)
	}
}
