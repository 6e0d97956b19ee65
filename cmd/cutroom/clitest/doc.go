// Package clitest runs the command line as people and scripts do, from a terminal and through
// pipes, against a server on this machine.
package clitest
