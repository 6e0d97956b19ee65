// Package platform has no code of its own. Here lives what would serve any other
// program as well: an HTTP server with its limits, traces, the Lambda runtime's
// requests and answers, how AWS clients are made.
//
// A platform package imports none above it. What knows a job, a file or a model
// does not belong here.
package platform
