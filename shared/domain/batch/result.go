package batch

import (
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

// CheckResult refuses the bytes of a file to a caller who is limited to models if they are
// the results of a batch of another key: its model may be any.
//
// Errors: fault.Forbidden.
func CheckResult(who credential.Principal, f file.File) error {
	foreign := len(who.Key.Limits.Models) > 0 && who.Key.ID != f.Key
	if f.Purpose == OutputPurpose && (foreign || len(who.Scope().Models) > 0) {
		return fault.New(fault.Forbidden, "The file has results of a batch, whose model may be one that is not allowed.")
	}
	return nil
}
