package api

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"

	"cutroom/shared/domain/fault"
	"cutroom/shared/engine"
)

// See docs/contract/jobs.md#previews.
var (
	errNoPreview   = fault.New(fault.NotFound, "The job has no preview yet.")
	errPreviewGone = fault.New(fault.NotFound, "The job has ended, so its previews were deleted.")
)

func (s *service) showPreview(w http.ResponseWriter, r *http.Request, c call) error {
	j, err := s.namedJob(r, c)
	switch {
	case err != nil:
		return err
	case j.Status.Terminal():
		return errPreviewGone
	case j.Nonce == "":
		return errNoPreview
	}
	blob, err := s.Blobs.Open(r.Context(), j.PreviewBlob(), 0, engine.MaxPreview)
	if fault.Is(err, fault.NotFound) {
		return errNoPreview
	}
	if err != nil {
		return fmt.Errorf("open a preview: %w", err)
	}
	defer blob.Close()
	picture, err := io.ReadAll(blob)
	if err != nil {
		return fmt.Errorf("read a preview: %w", err)
	}
	hash := sha256.Sum256(picture)
	source := blobRange{j.PreviewBlob(), 0, int64(len(picture))}
	return s.sendPicture(w, r, source, "private, no-cache", `"`+hex.EncodeToString(hash[:])+`"`,
		disposition("inline", j.ResultName()+"-preview", j.ID+"-preview", ".jpg"))
}
