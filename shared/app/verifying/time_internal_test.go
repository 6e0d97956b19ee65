package verifying

import (
	"testing"

	"cutroom/shared/service/api"
)

// A file that is made to harm ends before those who wait for their turns give up: an account that
// sends nothing else would keep all others from theirs.
func TestOneFileDoesNotOutlastAWait(t *testing.T) {
	if got := NewReader(Config{}).config.Time; got >= api.VerifyWait {
		t.Errorf("a file may take %v, and others wait for %v", got, api.VerifyWait)
	}
}
