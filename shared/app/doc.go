// Package app has no code of its own. It holds the wiring that several main
// packages share: settings from the environment, and the choice of engines, traces
// and records that the settings name.
//
// These packages may import all others. A setting that becomes an adapter does so
// here and nowhere else.
package app
