package job

import (
	"encoding/binary"
	"errors"
)

// Thumbnails are small pictures of a completed job, as JPEGs
// (docs/contract/jobs.md#thumbnails). One that could not be made is empty.
type Thumbnails struct{ Result, Input []byte }

// MaxThumbnails is the size of the blob of a job's thumbnails at most, in bytes.
const MaxThumbnails = 64 << 10

// ThumbnailsBlob names the blob of the thumbnails of a run's result. It is stored
// once the job is completed, and lives as long as the result.
func ThumbnailsBlob(id, nonce string) string { return Folder(id) + "/thumbnails-" + nonce }

// Encode returns the content of the blob: the length of the result's picture, in 4
// bytes, and the two pictures. They are one blob because an object store charges
// for each write.
func (t Thumbnails) Encode() []byte {
	content := binary.BigEndian.AppendUint32(nil, uint32(len(t.Result)))
	return append(append(content, t.Result...), t.Input...)
}

// DecodeThumbnails decodes what Encode returned.
func DecodeThumbnails(content []byte) (Thumbnails, error) {
	if len(content) < 4 {
		return Thumbnails{}, errors.New("job: the blob of thumbnails is too short")
	}
	length, pictures := binary.BigEndian.Uint32(content), content[4:]
	if uint64(length) > uint64(len(pictures)) {
		return Thumbnails{}, errors.New("job: the blob of thumbnails is cut off")
	}
	return Thumbnails{Result: pictures[:length], Input: pictures[length:]}, nil
}
