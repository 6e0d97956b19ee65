package main

import (
	"github.com/aws/jsii-runtime-go"
)

// unreserved is the concurrency that Lambda always keeps for functions without a reservation
// (Lambda API Reference, "PutFunctionConcurrency").
const unreserved = 100

// internalConcurrency maps event-driven functions to their reserved concurrency, which is enough for a busy service.
// SQS's pollers start up to webhooksAtOnce instances of the webhooks function, and the jobs table's stream starts
// more.
var internalConcurrency = map[string]int{
	"wake": 2, "scale": 1, "reaper": 5, "arrived": 5, "expiry": 2, "webhooks": webhooksAtOnce + 2,
	"steps": stepsAtOnce,
}

// streaming lists the functions whose responses stay open for minutes, for as long as a client reads.
var streaming = []string{"content", "inference"}

const leastConcurrency = 150

// reserved returns a function's reserved concurrency, which is also its limit, or nil if the function has no
// reservation.
//
// Without reservations, all of an account's functions share one pool, and open streams could use it up. Then no
// worker would be started, and no job would end. So event-driven functions have their own reservations, and each
// streaming function has a quarter of the rest.
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
