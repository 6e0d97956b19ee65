package dynamo

import (
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/job"
)

// isOpen is the condition that a job has not ended.
const isOpen = "#status IN (:pending, :processing)"

// isRun is the condition that the job is open and its current run has the nonce.
const isRun = "#nonce = :nonce AND " + isOpen

// JobEnd is a conditional update that ends a job. Runs performs it with a call. The definition of
// package stepfn's state machine contains the updates for failures, so both end jobs on the same
// conditions.
type JobEnd struct {
	// Update and Condition are expressions. Names holds their attribute placeholders.
	Update, Condition string
	Names             map[string]string
	// Values holds the values that are the same for every job. The writer adds ":now", the time
	// of the write in JobTimeLayout, and the values named in the comments of completeRun, FailRun
	// and FailJob.
	Values map[string]types.AttributeValue
}

// completeRun returns the write of a job's result. The writer adds ":nonce", the run's nonce, and
// ":result", a job.Result in JSON.
func completeRun() JobEnd {
	return JobEnd{
		Update:    "SET #status = :status, #progress = :full, #completed_at = :now, #result = :result",
		Condition: isRun + " AND #deadline > :now",
		Names:     named("status", "progress", "completed_at", "result", "nonce", "deadline"),
		Values: item{
			":status": statusValue(job.Completed), ":full": number(1),
			":pending": statusValue(job.Pending), ":processing": statusValue(job.Processing),
		},
	}
}

// FailRun returns the write that fails a job from its run. The writer adds ":nonce", the run's
// nonce, and ":failure", a job.Failure in JSON.
func FailRun() JobEnd {
	return JobEnd{
		Update:    "SET #status = :status, #failure = :failure, #completed_at = :now",
		Condition: isRun,
		Names:     named("status", "failure", "completed_at", "nonce"),
		Values: item{
			":status":  statusValue(job.Failed),
			":pending": statusValue(job.Pending), ":processing": statusValue(job.Processing),
		},
	}
}

// FailJob returns the write that fails a job during any run. The writer adds ":failure", a
// job.Failure in JSON. The write removes the nonce, so that the interrupted run does not mistake
// this end for its own.
func FailJob() JobEnd {
	return JobEnd{
		Update:    "SET #status = :status, #failure = :failure, #completed_at = :now, #nonce = :none",
		Condition: isOpen,
		Names:     named("status", "failure", "completed_at", "nonce"),
		Values: item{
			":status": statusValue(job.Failed), ":none": text(""),
			":pending": statusValue(job.Pending), ":processing": statusValue(job.Processing),
		},
	}
}

func (e JobEnd) with(values item) update {
	all := maps.Clone(e.Values)
	maps.Copy(all, values)
	return update{set: e.Update, condition: e.Condition, names: e.Names, values: all}
}

func statusValue(status job.Status) types.AttributeValue { return text(string(status)) }
