package preview_test

import (
	"errors"
	"path/filepath"
	"testing"

	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
)

// The clip has a valid header and sound, but no decodable frame.
func TestClipWithoutDecodableFramesIsRejected(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.mp4")
	original := mediatest.Video{}.Make(t)
	mediatest.Run(t, "-i", original, "-c", "copy", "-bsf:v", "filter_units=remove_types=5", path)
	found, err := tools()
	if err != nil {
		t.Fatal(err)
	}
	info, err := found.ProbeVideo(t.Context(), original, "video/mp4")
	if err != nil {
		t.Fatal(err)
	}
	spec := small(t, "a watercolor painting")
	spec.Data = &engine.Input{Path: path, MIME: "video/mp4", Info: info}
	_, _, err = attempt(t, t.Context(), spec, func(engine.Progress) {})
	var failure *engine.Error
	if !errors.As(err, &failure) || failure.Code != job.InvalidInput {
		t.Errorf("the edit ends with %v, want %s", err, job.InvalidInput)
	}
}
