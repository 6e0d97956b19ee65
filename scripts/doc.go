// Package scripts checks the scripts and the pinned versions of dependencies.
package scripts
