package dynamo

import (
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/job"
)

const isOpen = "#status IN (:pending, :processing)"

// isRun requires that the job is open and that its current run has the nonce.
const isRun = "#nonce = :nonce AND " + isOpen

// JobEnd is a conditional update that ends a job. Package stepfn puts the updates for failures into its state
// machine, so the state machine and this package end jobs under the same conditions.
type JobEnd struct {
	Update, Condition string
	Names             map[string]string
	// Values are the same for every job. The writer adds ":now", the time of the write in
	// JobTimeLayout, and the values named in the comments of completeRun, FailRun and FailJob.
	Values map[string]types.AttributeValue
}

// completeRun needs ":nonce", the run's nonce, and ":result", a job.Result in JSON.
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

// FailRun needs ":nonce", the run's nonce, and ":failure", a job.Failure in JSON.
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

// FailJob fails a job regardless of its current run. It needs ":failure", a job.Failure in JSON. It
// removes the nonce, so that the interrupted run does not mistake this end for its own.
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

// FailUnstarted is like FailJob, but only for a job that has not started.
func FailUnstarted() JobEnd {
	end := FailJob()
	end.Condition += " AND attribute_not_exists(#started_at)"
	end.Names["#started_at"] = "started_at"
	return end
}

func (e JobEnd) with(values item) update {
	all := maps.Clone(e.Values)
	maps.Copy(all, values)
	return update{set: e.Update, condition: e.Condition, names: e.Names, values: all}
}

func statusValue(status job.Status) types.AttributeValue { return text(string(status)) }
