// Package platform has no code of its own. This wing holds what would serve any other
// program as well: an HTTP server with its limits, traces, the Lambda runtime's requests
// and answers, how AWS clients are made.
//
// A platform package imports nothing from the wings above it. Code that knows about jobs,
// files or models does not belong here.
package platform
