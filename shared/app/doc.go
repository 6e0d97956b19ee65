// Package app has no code of its own. Here lives what several main packages are
// wired by: settings from the environment, and the choice of engines, traces and
// records that the settings name.
//
// These packages may import all others. A setting that becomes an adapter does so
// here and nowhere else.
package app
