// Package platform contains packages that any other program could use: an HTTP server with limits,
// traces, the Lambda runtime's requests and answers, AWS clients.
//
// A platform package does not import service, domain, adapter or app packages. Code about jobs,
// files or models does not belong here.
package platform
