// Package domain has no code of its own. Here live the things that the service is
// about (jobs, files, credentials, sessions, usage, models), the rules that hold
// for them, and the small interfaces by which they are kept.
//
// A package of the domain imports the domain alone: no adapter, no AWS type, no
// net/http. Time, randomness and ids come in through constructors. Its errors are
// those of [cutroom/shared/domain/fault].
//
// A new record or rule goes into the package of the thing that it belongs to. A
// new interface for a store comes with a conformance suite in a package of its
// own (job and job/jobtest) that every adapter runs.
package domain
