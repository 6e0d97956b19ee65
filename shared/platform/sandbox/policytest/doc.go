// Package policytest defines the system calls that a sandboxed program may make. Package sandbox
// has a filter for each architecture; go generate ./shared/platform/sandbox writes them when the
// policy changes. No program imports this package, because the library's tables of system calls
// would slow each start by 0.4 ms.
package policytest
