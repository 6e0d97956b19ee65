//go:build !linux

package lowpriority

// lower does nothing: priorities are those of whole processes here.
func lower() {}
