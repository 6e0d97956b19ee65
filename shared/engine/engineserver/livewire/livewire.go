// Package livewire is the protocol of live sessions with an engine server, version 1.
//
// GET /v1/live returns a [Catalogue]. A session is one POST to /v1/live. Its request and response
// are concurrent streams of messages. If a session cannot start, the response has a status other
// than 200 and a [Line] with the error: 503 if it may start later, 422 if it never will. Closing
// the connection ends the session, even during a message or an edit.
//
// A message is an eight-byte header and a payload. The header is the kind (one byte), three zero bytes, and the
// length of the payload. All numbers are unsigned, with the most significant byte first.
//
//	1 text     JSON: a [Begin] or a [Wish] from the client, a [Line] from the server
//	2 picture  number (4 bytes), width and height (2 each), range (1 byte: 0 full, as in a
//	           JPEG; 1 narrow, as in video), three bytes of 0; then the planes of Y, Cb and
//	           Cr (BT.601, 4:2:0), row by row without gaps. Chroma sides are rounded up
//	3 image    number, width and height as above; then rows of red, green, blue and alpha,
//	           one byte each, not premultiplied. Without pixels it removes the image
//
// The client's first message is a Begin; the server's first message is a line with Ready. The
// server responds to every wish and every image with a line that has its number, and to every
// picture with a picture or a line that has its number, unless a newer picture replaced a waiting
// one, in either direction. An edited picture has the range of the original, but may have another
// size. A change takes effect at the latest with the pictures sent after its response.
package livewire

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"io"

	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
)

const Version = 1

const Path = "/v1/live"

const ContentType = "application/vnd.cutroom.live"

const (
	MaxText = 64 << 10
	// MaxPixels is 1920x1080 plus the padding rows that codecs add.
	MaxPixels      = 1920 * 1088
	MaxImagePixels = 1 << 20
)

type Kind uint8

const (
	Text    Kind = 1
	Picture Kind = 2
	Image   Kind = 3
)

const (
	headBytes    = 8
	pictureBytes = 12
	imageBytes   = 8
)

// Catalogue lists a server's live models and its session capacity.
type Catalogue struct {
	Version int              `json:"version"`
	Models  map[string]Model `json:"models"`
	// Sessions is the maximum number of concurrent sessions. Open is the current number.
	Sessions int `json:"sessions"`
	Open     int `json:"open"`
}

type Model struct {
	// Ready is false while the model loads and warms up.
	Ready bool `json:"ready"`
}

type Begin struct {
	Version int    `json:"version"`
	Model   string `json:"model"`
	Seed    uint32 `json:"seed"`
}

type Wish struct {
	Number uint32 `json:"number"`
	Prompt string `json:"prompt"`
}

// Exactly one field is set in each line.
type Line struct {
	Ready   *Ready   `json:"ready,omitempty"`
	Set     *Set     `json:"set,omitempty"`
	Refused *Refused `json:"refused,omitempty"`
	Error   *Failure `json:"error,omitempty"`
}

// Ready starts a session. The server sends it once everything that the first frame needs is loaded and warmed up.
type Ready struct {
	Engine string `json:"engine"`
}

// Set is the response to a [Wish] or an image. If Error is set, nothing has changed.
type Set struct {
	Number uint32   `json:"number"`
	Error  *Failure `json:"error,omitempty"`
	// The engine's report (see engine.Outcome).
	Engine     string   `json:"engine,omitempty"`
	Understood []string `json:"understood,omitzero"`
	Notice     string   `json:"notice,omitempty"`
}

// Refused is the response to a frame that the server does not edit.
type Refused struct {
	Number uint32  `json:"number"`
	Error  Failure `json:"error"`
}

// A Failure's message is meant for the user.
type Failure struct {
	Code      job.Code `json:"code"`
	Message   string   `json:"message"`
	Retryable bool     `json:"retryable"`
}

type Reader struct{ from *bufio.Reader }

func NewReader(from io.Reader) *Reader { return &Reader{bufio.NewReaderSize(from, 64<<10)} }

// Next reads the payload into the buffer if that is large enough. If the stream ends between two messages, the error
// is io.EOF.
func (r *Reader) Next(buffer func() []byte) (kind Kind, payload []byte, err error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(r.from, head[:]); err != nil {
		return 0, nil, err
	}
	kind, length := Kind(head[0]), int64(binary.BigEndian.Uint32(head[4:]))
	if head[1] != 0 || head[2] != 0 || head[3] != 0 || length > longest(kind) {
		return 0, nil, fmt.Errorf("livewire: unexpected message of kind %d with %d bytes", kind, length)
	}
	if buffer != nil {
		payload = buffer()
	}
	if int64(cap(payload)) < length {
		payload = make([]byte, length)
	}
	payload = payload[:length]
	if _, err := io.ReadFull(r.from, payload); err != nil {
		return 0, payload, fmt.Errorf("livewire: a message is truncated: %w", err)
	}
	return kind, payload, nil
}

func longest(kind Kind) int64 {
	switch kind {
	case Text:
		return MaxText
	case Picture:
		// Chroma sizes are rounded up, so a one-row picture has as much chroma as luma.
		return pictureBytes + 2*MaxPixels + 2
	case Image:
		return imageBytes + 4*MaxImagePixels
	}
	return -1
}

func begin(to []byte, kind Kind, length int) []byte {
	return binary.BigEndian.AppendUint32(append(to, byte(kind), 0, 0, 0), uint32(length))
}

// AppendText appends the value as JSON. It fails if the JSON is too long.
func AppendText(to []byte, value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return to, fmt.Errorf("livewire: %w", err)
	}
	if len(text) > MaxText {
		return to, fmt.Errorf("livewire: the text has %d bytes", len(text))
	}
	return append(begin(to, Text, len(text)), text...), nil
}

func Fits(size image.Point) bool {
	return size.X >= 1 && size.Y >= 1 && size.X < 1<<16 && size.Y < 1<<16 && size.X*size.Y <= MaxPixels
}

func planesBytes(size image.Point) (luma, chroma int) {
	return size.X * size.Y, ((size.X + 1) / 2) * ((size.Y + 1) / 2)
}

func AppendPicture(to []byte, number uint32, picture *engine.Picture) []byte {
	size := picture.Rect.Size()
	luma, chroma := planesBytes(size)
	to = begin(to, Picture, pictureBytes+luma+2*chroma)
	to = binary.BigEndian.AppendUint32(to, number)
	to = binary.BigEndian.AppendUint16(to, uint16(size.X))
	to = binary.BigEndian.AppendUint16(to, uint16(size.Y))
	narrow := byte(0)
	if picture.Narrow {
		narrow = 1
	}
	to = append(to, narrow, 0, 0, 0)
	for y := range size.Y {
		to = append(to, picture.Y[y*picture.YStride:][:size.X]...)
	}
	to = appendChroma(to, &picture.YCbCr, picture.Cb)
	return appendChroma(to, &picture.YCbCr, picture.Cr)
}

func appendChroma(to []byte, of *image.YCbCr, plane []byte) []byte {
	size := of.Rect.Size()
	wide, high := (size.X+1)/2, (size.Y+1)/2
	if of.SubsampleRatio == image.YCbCrSubsampleRatio420 {
		for y := range high {
			to = append(to, plane[y*of.CStride:][:wide]...)
		}
		return to
	}
	for y := range high {
		below := min(2*y+1, size.Y-1)
		for x := range wide {
			right := min(2*x+1, size.X-1)
			sum := int(plane[of.COffset(2*x, 2*y)]) + int(plane[of.COffset(right, 2*y)]) +
				int(plane[of.COffset(2*x, below)]) + int(plane[of.COffset(right, below)])
			to = append(to, byte((sum+2)/4))
		}
	}
	return to
}

func ParsePicture(payload []byte) (number uint32, picture *engine.Picture, err error) {
	if len(payload) < pictureBytes {
		return 0, nil, fmt.Errorf("livewire: the picture message has %d bytes", len(payload))
	}
	number = binary.BigEndian.Uint32(payload)
	size := image.Pt(int(binary.BigEndian.Uint16(payload[4:])), int(binary.BigEndian.Uint16(payload[6:])))
	luma, chroma := planesBytes(size)
	planes := payload[pictureBytes:]
	if !Fits(size) || payload[8] > 1 || len(planes) != luma+2*chroma {
		return 0, nil, fmt.Errorf("livewire: invalid picture: %v with %d bytes", size, len(planes))
	}
	return number, &engine.Picture{
		YCbCr: image.YCbCr{
			Y: planes[:luma:luma], Cb: planes[luma : luma+chroma : luma+chroma], Cr: planes[luma+chroma:],
			YStride: size.X, CStride: (size.X + 1) / 2, SubsampleRatio: image.YCbCrSubsampleRatio420,
			Rect: image.Rectangle{Max: size},
		},
		Narrow: payload[8] == 1,
	}, nil
}

// A nil reference removes the image. AppendImage fails if the image is too large or inconsistent.
func AppendImage(to []byte, number uint32, reference *engine.ReferenceImage) ([]byte, error) {
	var none engine.ReferenceImage
	if reference == nil {
		reference = &none
	}
	width, height := reference.Size.Width, reference.Size.Height
	if width < 0 || height < 0 || width >= 1<<16 || height >= 1<<16 || width*height > MaxImagePixels ||
		len(reference.Pixels) != 4*width*height {
		return to, fmt.Errorf("livewire: invalid image: %dx%d with %d bytes", width, height, len(reference.Pixels))
	}
	to = begin(to, Image, imageBytes+len(reference.Pixels))
	to = binary.BigEndian.AppendUint32(to, number)
	to = binary.BigEndian.AppendUint16(to, uint16(width))
	to = binary.BigEndian.AppendUint16(to, uint16(height))
	return append(to, reference.Pixels...), nil
}
