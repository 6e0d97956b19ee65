// Package shared has no code. Its packages are the parts of all programs of
// Cutroom, in wings that are layers, the highest first:
//
//	app       the wiring of programs: settings, and the choice of adapters
//	adapter   a store, a queue or another system behind the interfaces below
//	service   the services: the media API, the gateway, realtime, the worker
//	engine    the engines that edit media
//	domain    the types, the rules, and the interfaces that they need
//	platform  code that any program could use: HTTP, traces, Lambda, AWS clients
//
// A package imports from its own wing and from lower wings, never from higher ones.
// The client of the services (client) and the tests' shared code (testkit) are outside
// the wings: only packages for tests import them.
// layers_test.go checks these rules.
package shared
