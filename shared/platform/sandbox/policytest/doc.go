// Package policytest defines which system calls a sandboxed program may make. When the policy changes, go
// generate ./shared/platform/sandbox writes a filter for each architecture. No program imports this package,
// because the seccomp library's system call tables would slow down each start by 0.4 ms.
package policytest
