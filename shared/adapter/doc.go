// Package adapter contains the packages that connect the service to other systems: SQLite and a folder of
// blobs on one machine, DynamoDB, S3, SQS, Step Functions and others in AWS, Prometheus, webhooks.
//
// Each package is named after the system that it adapts, and passes the conformance suite of every
// interface that it implements. Adapters import platform and domain packages and, rarely, each
// other. No service imports an adapter.
//
// To add a store, add a package here and a line in the programs' choice.
package adapter
