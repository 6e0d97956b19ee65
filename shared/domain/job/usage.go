package job

import "cutroom/shared/domain/usage"

// Usage returns the record of a job's acceptance, which Store.Accept adds to the
// usage of its account.
func Usage(j Job) usage.Record {
	return usage.Record{
		ID: j.ID, Account: j.Account, Key: j.Key, Model: j.Model, Day: usage.DayOf(j.CreatedAt),
		Counts: usage.Counts{Jobs: 1},
	}
}

// Billed returns the record of a completed job's end, which Runs.Complete adds to the
// usage of its account: that it was completed, and what it did cost. It counts on the
// day on which the job was accepted.
func Billed(completed Job) usage.Record {
	record := Usage(completed)
	record.Counts = usage.Counts{JobsCompleted: 1}
	record.Cost, _, _ = completed.Cost()
	return record
}
