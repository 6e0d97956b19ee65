package ffmpeg

import (
	"testing"

	"cutroom/shared/domain/job"
)

// A decoder may fail with -1, which is also the system's error number for "Operation not permitted".
func TestDecoderFailureIsNotMachineTrouble(t *testing.T) {
	const permitted = ": Operation not permitted\n"
	for log, ofMachine := range map[string]bool{
		"Error while decoding stream #0:0" + permitted + "Cannot determine format of input stream 0:0\n": false,
		"[vist#0:0/h264 @ 0x1] [dec:h264 @ 0x2] Decoding error" + permitted:                              false,
		"[dec:h264 @ 0x2] Error submitting packet to decoder" + permitted:                                false,
		"file:data" + permitted: true,
		"file:data" + permitted + "Error while decoding stream #0:0" + permitted: true,
		"Error while decoding stream #0:0: Resource temporarily unavailable\n":   true,
	} {
		err := explain(&failure{log: log})
		if got := err != nil && err.Code == job.EngineError; got != ofMachine {
			t.Errorf("%q: %v, trouble of the machine: %v", log, err, got)
		}
	}
}
