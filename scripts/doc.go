// Package scripts tests the scripts and checks the pinned versions of dependencies.
package scripts
