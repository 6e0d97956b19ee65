package batch

import (
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

// CheckResult refuses a file with the results of another key's batch to a caller limited to models,
// because the batch may have used any model.
//
// Errors: fault.Forbidden.
func CheckResult(who credential.Principal, f file.File) error {
	foreign := len(who.Key.Limits.Models) > 0 && who.Key.ID != f.Key
	if f.Purpose == OutputPurpose && (foreign || len(who.Scope().Models) > 0) {
		return fault.New(fault.Forbidden, "The file has results of a batch, whose model may be one that is not allowed.")
	}
	return nil
}
