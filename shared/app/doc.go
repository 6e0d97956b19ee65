// Package app contains the wiring that several main packages share: settings from the environment,
// and engines, traces and records chosen by settings.
//
// These packages may import all others. Only they turn settings into adapters.
package app
