// Package policytest defines the system calls that a sandboxed program may make. go generate
// ./shared/platform/sandbox writes a filter for each architecture when the policy changes. No
// program imports this package, because the library's tables of system calls would slow each
// start by 0.4 ms.
package policytest
