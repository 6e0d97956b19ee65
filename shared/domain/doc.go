// Package domain contains the packages for the service's subjects (jobs, files, credentials,
// sessions, usage, models), their rules, and the small interfaces of their stores.
//
// A package of the domain imports only the domain: no adapter, no AWS type, no net/http. Time, randomness
// and ids come in through constructors. Its errors are those in [cutroom/shared/domain/fault].
//
// A new record or rule goes into the package of its subject. A new interface for a store comes with
// a conformance suite in a separate package (job and job/jobtest) that every adapter runs.
package domain
