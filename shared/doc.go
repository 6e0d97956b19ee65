// Package shared has no code of its own. It is the library that all programs of
// Cutroom are wired from, in wings that stand above one another:
//
//	app       what programs are wired by: settings, and the choice of adapters
//	adapter   a store, a queue or another system behind the interfaces below
//	service   what callers meet: the media API, the gateway, realtime, the worker
//	engine    what edits media
//	domain    the types, the rules, and the interfaces that they need
//	platform  what knows nothing of Cutroom: HTTP, traces, Lambda, AWS clients
//
// A package imports from its own wing and from those below it, never from above.
// The client of the services (client) and what tests share (testkit) stand beside
// the wings: no wing imports them, but for packages that are themselves for tests.
// The test beside this file holds all of it.
package shared
