// Package app has no code of its own. It holds the wiring that several main packages share: settings
// from the environment, and engines, traces and records chosen by settings.
//
// These packages may import all others. A setting that becomes an adapter does so
// here and nowhere else.
package app
