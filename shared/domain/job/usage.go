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
