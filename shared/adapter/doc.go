// Package adapter has no code of its own. Here lives what ties the service to
// other systems: SQLite and a folder of blobs on one machine, DynamoDB, S3, SQS,
// Step Functions and others in AWS, Prometheus, webhooks.
//
// Each package is named after what it adapts, and passes the conformance suite of
// every interface that it satisfies. Adapters import what stands below them and,
// where it truly serves, each other; no service knows them.
//
// A new store is a new package here and a line where programs choose one.
package adapter
