package job

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path"
)

// Thumbnails holds JPEGs for a completed job (docs/contract/jobs.md#thumbnails). A picture that
// could not be made is empty.
type Thumbnails struct{ Result, Input, Poster []byte }

const (
	MaxThumbnails = 1 << 20 // limits the blob, in bytes
	// ThumbnailsStart is the position of the result's picture in the blob. The pictures of the input and the poster follow.
	ThumbnailsStart = 4
)

// posterMark ends a blob that contains a poster. No JPEG ends with it.
const posterMark = "poster\n"

// ThumbnailsBlob returns the name of a blob that is stored after the job completes and deleted with the result.
func (j Job) ThumbnailsBlob() string {
	folder := j.folder()
	if j.Result != nil {
		folder = path.Dir(j.Result.Blob)
	}
	return folder + "/thumbnails-" + j.Nonce
}

// Encode puts the pictures into one blob, because an object store charges for each write. The format is the
// length of the result's picture in 4 bytes, the pictures of the result and the input, then the poster, its
// length and posterMark. Older decoders ignore whatever follows the first two pictures.
func (t Thumbnails) Encode() []byte {
	content := binary.BigEndian.AppendUint32(nil, uint32(len(t.Result)))
	content = append(append(content, t.Result...), t.Input...)
	if len(t.Poster) == 0 {
		return content
	}
	content = binary.BigEndian.AppendUint32(append(content, t.Poster...), uint32(len(t.Poster)))
	return append(content, posterMark...)
}

func DecodeThumbnails(content []byte) (Thumbnails, error) {
	content, poster, err := cutPoster(content)
	if err != nil {
		return Thumbnails{}, err
	}
	if len(content) < 4 {
		return Thumbnails{}, errors.New("job: the thumbnail blob is too short")
	}
	length, pictures := binary.BigEndian.Uint32(content), content[4:]
	if uint64(length) > uint64(len(pictures)) {
		return Thumbnails{}, errors.New("job: the thumbnail blob is truncated")
	}
	return Thumbnails{Result: pictures[:length], Input: pictures[length:], Poster: poster}, nil
}

func cutPoster(content []byte) (rest, poster []byte, err error) {
	rest, marked := bytes.CutSuffix(content, []byte(posterMark))
	if !marked {
		return content, nil, nil
	}
	at := len(rest) - 4
	if at < 0 || uint64(binary.BigEndian.Uint32(rest[at:])) > uint64(at) {
		return nil, nil, errors.New("job: the thumbnail blob has an invalid poster")
	}
	from := at - int(binary.BigEndian.Uint32(rest[at:]))
	return rest[:from], rest[from:at], nil
}
