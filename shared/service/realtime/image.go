package realtime

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/sniff"
	"cutroom/shared/engine"
)

// maxDecodes limits the images that are decoded at the same time. Each takes a few hundred megabytes. An account
// decodes only one at a time, and 1/decodeParts of the time.
const maxDecodes, decodeParts = 2, 4

// changeImage handles a set_image message. Either both the image and the prompt change, or neither does.
//
// Errors: fault.Invalid; fault.Limited.
func (c *connection) changeImage(message clientMessage) (outcome engine.Outcome, err error) {
	if !c.pace.changes.Allow() {
		return outcome, errTooFast()
	}
	asked, err := message.prompt()
	if err != nil {
		return outcome, err
	}
	ctx, cancel := context.WithTimeout(c.life, c.server.config.Times.Image)
	defer cancel()
	image, err := c.imageOf(ctx, message)
	if err != nil {
		return outcome, err
	}
	if outcome, err = c.setImage(ctx, image); err != nil || !asked.sent {
		return outcome, err
	}
	return c.setPrompt(asked)
}

func (c *connection) setImage(
	ctx context.Context, image *engine.ReferenceImage,
) (outcome engine.Outcome, err error) {
	if !c.beginChange() {
		return outcome, c.life.Err()
	}
	defer c.endChange()
	c.prompts.mu.Lock()
	defer c.prompts.mu.Unlock()
	return c.editor.SetImage(ctx, image)
}

// imageOf decodes the image in a message or in the file named by image_ref. It returns nil if the image is null.
//
// Errors: fault.Invalid; fault.Unavailable.
func (c *connection) imageOf(ctx context.Context, message clientMessage) (*engine.ReferenceImage, error) {
	if len(message.ImageRef) == 0 && len(message.ImageData) == 0 {
		return nil, fault.New(fault.Invalid, "image_ref or image_data is required; null removes the image.")
	}
	id, referred, err := textOf("image_ref", message.ImageRef)
	if err != nil {
		return nil, err
	}
	switch brought := !isNull(message.ImageData); {
	case referred && brought:
		return nil, fault.New(fault.Invalid, "Send image_ref or image_data, not both.")
	case referred:
		return c.decode(ctx, func() ([]byte, error) { return c.storedImage(ctx, id) })
	case brought:
		return c.decode(ctx, func() ([]byte, error) { return decodeImage(message.ImageData) })
	}
	return nil, nil
}

// decode decodes an image. It reads the image only when it is the account's turn, because the turns limit the memory.
func (c *connection) decode(ctx context.Context, read func() ([]byte, error)) (image *engine.ReferenceImage, err error) {
	if c.server.config.Pictures == nil {
		return nil, fault.New(fault.Invalid, "This server does not accept images.")
	}
	image = &engine.ReferenceImage{}
	return image, c.server.decodes.Slowly(ctx, c.account(), decodeParts, func() error {
		data, err := read()
		if err != nil {
			return err
		}
		mime, err := checkImage(data)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, c.server.config.Times.Decode)
		defer cancel()
		image.Pixels, image.Size, err = c.server.config.Pictures.Still(ctx, data, mime, imageSide)
		return err
	})
}

func errImageSize() error {
	return fault.New(fault.Invalid, "The image is larger than %d bytes.", maxImage)
}

// storedImage reads the file of an image_ref.
//
// Errors: fault.Invalid if the account has no such file or the file is too large.
func (c *connection) storedImage(ctx context.Context, id string) ([]byte, error) {
	missing := fault.New(fault.Invalid, "image_ref must be the id of a stored file.")
	f, err := c.server.config.Files.Get(ctx, c.account(), id)
	if fault.Is(err, fault.NotFound) {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	if f.Size > maxImage {
		return nil, errImageSize()
	}
	content, err := c.server.config.Blobs.Open(ctx, f.Blob, 0, f.Size)
	if fault.Is(err, fault.NotFound) {
		return nil, missing // the file was just deleted
	}
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return io.ReadAll(content)
}

// decodeImage decodes base64 data, either plain or in a data URL.
//
// Errors: fault.Invalid.
func decodeImage(member json.RawMessage) ([]byte, error) {
	text, _, err := textOf("image_data", member)
	if err != nil {
		return nil, err
	}
	if rest, found := strings.CutPrefix(text, "data:"); found {
		_, text, _ = strings.Cut(rest, ",")
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "image_data is not valid base64.")
	}
	return data, nil
}

// checkImage checks an image before decoding and returns its type.
//
// Errors: fault.Invalid.
func checkImage(data []byte) (mime string, err error) {
	if len(data) > maxImage {
		return "", errImageSize()
	}
	kind, known := sniff.Media(data)
	if !known || !kind.Image {
		return "", fault.New(fault.Invalid, "The image has an unknown format.")
	}
	if kind.MIME == "image/jpeg" && scans(data) > maxScans {
		return "", fault.New(fault.Invalid, "The image has more than %d scans.", maxScans)
	}
	info, err := media.Inspect(bytes.NewReader(data), int64(len(data)), kind.MIME)
	if err != nil {
		return "", err
	}
	// The product of the claimed width and height may overflow an integer.
	if float64(info.Width)*float64(info.Height) > maxImagePixels {
		return "", fault.New(fault.Invalid, "The image is larger than %d megapixels.", maxImagePixels/1_000_000)
	}
	return kind.MIME, nil
}
