package job

import (
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/usage"
)

func Usage(j Job) usage.Record {
	return usage.Record{
		ID: j.ID, Account: j.Account, Key: usage.KeyOf(j.Key, j.Request.Label), Model: j.Model, Day: usage.DayOf(j.CreatedAt),
		Counts: usage.Counts{Jobs: 1},
	}
}

// Billed returns the usage record for a completed job and its cost. The record belongs to the day
// when the job was accepted (see Runs.Complete).
func Billed(completed Job) usage.Record {
	record := Usage(completed)
	record.Counts = usage.Counts{JobsCompleted: 1}
	record.Cost, _, _ = completed.Cost()
	return record
}

// Most returns a job's maximum possible usage. longest is the length to assume if the result's length is unknown.
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

// Settled returns the settlements for an ended job's holds. A failed job uses nothing.
func Settled(ended Job) []budget.Settlement {
	var used budget.Amounts
	if ended.Status == Completed {
		used.Jobs = 1
		used.Cost, _, _ = ended.Cost()
	}
	return budget.Settle(ended.Holds, used)
}
