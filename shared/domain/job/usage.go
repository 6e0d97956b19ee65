package job

import (
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/usage"
)

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

// Most returns the most that a job can use of budgets, given the longest result that there
// can be: that counts where the length is not known.
func Most(j Job, longest time.Duration) budget.Amounts {
	most := budget.Amounts{Jobs: 1}
	if j.Request.Price != nil {
		length := j.Request.Length
		if length <= 0 {
			length = longest
		}
		most.Cost, _ = j.Request.Price.Of(length)
	}
	return most
}

// Settled returns how the holds of a job that has ended are settled: by what is billed if
// it completed, and else by nothing.
func Settled(ended Job) []budget.Settlement {
	var used budget.Amounts
	if ended.Status == Completed {
		used.Jobs = 1
		used.Cost, _, _ = ended.Cost()
	}
	return budget.Settle(ended.Holds, used)
}
