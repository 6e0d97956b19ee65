// Package clitest runs the command line as people and scripts do, through pipes and through a
// terminal, against a server on this machine.
package clitest
