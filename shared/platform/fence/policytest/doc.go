// Package policytest says which system calls a fenced program may make. Package fence has filters
// of it for each architecture, which go generate ./shared/platform/fence makes when the policy
// changes. No program imports this package, because the library's tables of system calls would
// take it 0.4 ms at each of its starts.
package policytest
