package batch

import (
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

// CheckResult rejects a file with results from another key's batch if the caller may use only
// certain models, because the batch may have used any model.
//
// Errors: fault.Forbidden.
func CheckResult(who credential.Principal, f file.File) error {
	foreign := len(who.Key.Limits.Models) > 0 && who.Key.ID != f.Key
	if f.Purpose == OutputPurpose && (foreign || len(who.Scope().Models) > 0) {
		return fault.New(fault.Forbidden, "The file contains results of a batch that may have used a model that is not allowed.")
	}
	return nil
}
