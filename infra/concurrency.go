package main

import (
	"github.com/aws/jsii-runtime-go"
)

// unreserved is how much of an account's concurrency Lambda keeps for functions that
// have none reserved (Lambda API Reference, "PutFunctionConcurrency").
const unreserved = 100

// internalConcurrency is what the functions have that events start, by their names:
// enough for a busy service, each as many as its events come at once. SQS's pollers
// start webhooks up to webhooksAtOnce times, and the stream of jobs besides.
var internalConcurrency = map[string]int{
	"wake": 2, "scale": 1, "reaper": 5, "arrived": 5, "expiry": 2, "webhooks": webhooksAtOnce + 2,
	"steps": stepsAtOnce,
}

// streaming are the functions whose answers stay open for minutes, as long as a client
// reads.
var streaming = []string{"content", "inference"}

// leastConcurrency is the least that can be split.
const leastConcurrency = 150

// reserved returns how much of the account's concurrency a function has to itself,
// which is also the most that it takes; nil where it shares what is left.
//
// All functions of an account otherwise share one pool, of which open streams can take
// the whole: no worker would be woken then, and no job ended. So the functions that
// events start have theirs, and each of those that stream has a quarter of the rest and
// no more.
func (s *stack) reserved(function string) *float64 {
	if s.Concurrency == 0 {
		return nil
	}
	if n, ok := internalConcurrency[function]; ok {
		return jsii.Number(n)
	}
	rest := s.Concurrency - unreserved
	for _, n := range internalConcurrency {
		rest -= n
	}
	for _, name := range streaming {
		if name == function {
			return jsii.Number(max(1, rest/4))
		}
	}
	return nil
}
