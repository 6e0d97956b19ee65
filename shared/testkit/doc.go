// Package testkit has no code. Its packages are shared by tests: the harness of the conformance suites, programs
// and servers under test, measurements of pictures, a local AWS, a small disk, and a network that loses packets.
//
// Only tests, and packages whose names end in test, import these packages.
package testkit
