package batch

import (
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

// CheckResult checks whether the caller may read a batch's result file. If the caller may use only certain
// models, it rejects results of another key's batch, because that batch may have used any model.
//
// Errors: fault.Forbidden.
func CheckResult(who credential.Principal, f file.File) error {
	foreign := len(who.Key.Limits.Models) > 0 && who.Key.ID != f.Key
	if f.Purpose == OutputPurpose && (foreign || len(who.Scope().Models) > 0) {
		return fault.New(fault.Forbidden, "The file contains results of a batch that may have used a model that is not allowed.")
	}
	return nil
}
